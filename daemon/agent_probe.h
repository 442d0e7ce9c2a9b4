/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the record's descriptor out of an agent's connection and looks whether the sender really
 * maps it, in a short-lived child with a deadline. Two things can hang for ever here, and neither
 * may hang the daemon:
 *
 *  - Closing a descriptor that is not a memfd (FUSE, NFS) waits for its file system. So the child
 *    receives it, and hands on only what F_GET_SEALS, which asks no file system, knows for a memfd.
 *  - /proc/PID/maps and cmdline take the process's memory lock, which a wedged driver may hold. A
 *    rank whose lock is stuck is the very rank that must be watched: when the child cannot tell (no
 *    permission, no answer in time), the record is accepted, because all that is at stake is what a
 *    user claims about its own process. Only a complete list of mappings without the record says
 *    no. Without this look, whoever was handed a descriptor (a forked child, a helper program)
 *    could register somebody else's record as its own.
 *
 * Loop thread only. The child is killed at the deadline and reaped from the loop; one that cannot
 * be killed is abandoned, and counted against its user until it ends.
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

struct cw_probe_result {
	enum cw_probe_answer answer;
	int record_fd;       /* a memfd, the callback's to close; -1 = none came */
	const char *command; /* NUL-separated arguments; borrowed */
	size_t command_len;  /* 0 = not to be had */
};

/* The probe is gone when this is called. */
typedef void (*cw_probe_fn)(const struct cw_probe_result *result, void *user);

struct cw_probe_request {
	struct event_base *base;
	int conn_fd;      /* borrowed: the child has its own */
	size_t frame_len; /* bytes of the hello, at most 512 */
	pid_t pid;
	uid_t uid;
	unsigned timeout_ms;
	cw_probe_fn fn;
	void *user;
};

/* 0, or -errno (-EAGAIN: no process to be had): then no callback comes. */
int cw_probe_start(const struct cw_probe_request *request, struct cw_probe **ret);
/* No callback comes any more; the child is killed and reaped. Takes NULL; returns NULL. */
struct cw_probe *cw_probe_cancel(struct cw_probe *probe);

/* Abandoned children of this process that looked at agents of uid and have not ended. */
unsigned cw_probe_abandoned(uid_t uid);
