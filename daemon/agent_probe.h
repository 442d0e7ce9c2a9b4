/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the sender of a record really map it? Without this look, whoever was handed a descriptor
 * (a forked child, a helper program) could register somebody else's record as its own.
 *
 * /proc/PID/maps and cmdline take the process's memory lock, which a wedged driver may hold for
 * ever, so they are read in a short-lived child with a deadline. A rank whose lock is stuck is the
 * very rank that must be watched: when the child cannot tell (no permission, no answer in time),
 * the record is accepted, because all that is at stake is what a user claims about its own process.
 * Only a complete list of mappings without the record says no.
 *
 * Loop thread only. The child writes one page into a pipe and ends; it is killed at the deadline,
 * reaped from the loop, and forgotten if it cannot be killed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct event_base;
struct cw_probe;

enum cw_probe_answer {
	CW_PROBE_UNKNOWN = 0,
	CW_PROBE_MAPPED,
	CW_PROBE_NOT_MAPPED,
};

/* command: NUL-separated arguments, len 0 = not to be had. Borrowed. The probe is gone after. */
typedef void (*cw_probe_fn)(enum cw_probe_answer answer, const char *command, size_t len,
			    void *user);

/* 0, or -errno (-EAGAIN: no process to be had): then no callback comes. */
int cw_probe_start(struct event_base *base, int proc_fd, dev_t dev, ino_t ino, unsigned timeout_ms,
		   cw_probe_fn fn, void *user, struct cw_probe **ret);
/* No callback comes any more; the child is killed and reaped. Takes NULL; returns NULL. */
struct cw_probe *cw_probe_cancel(struct cw_probe *probe);
