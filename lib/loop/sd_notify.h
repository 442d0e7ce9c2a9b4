/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talks to the service manager. We report readiness, stopping and life signs for the watchdog, and
 * take listening descriptors. Without a service manager all functions do nothing. The functions
 * block only if the manager does not read: readiness, reload and stopping then wait at most 1 s.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_clock;

void cw_notify_ready(const char *status);
/* Reports that a reload begins. cw_notify_ready() reports its end. */
void cw_notify_reloading(int64_t monotonic_ns);
void cw_notify_stopping(void);
void cw_notify_status(const char *status);

/* Returns the watchdog's period in ns; 0 = no watchdog. Call cw_notify_alive() twice per period. */
int64_t cw_notify_watchdog_ns(void);
void cw_notify_alive(void);

/*
 * Returns the UNIX stream socket that the manager passed under this FileDescriptorName; -1 = none.
 */
int cw_notify_listen_fd(const char *name);

/* A descriptor that the manager passed to us, and the name under which we stored it. */
struct cw_passed_fd {
	int fd;
	char *name;
};
/*
 * Returns the passed descriptors whose name begins with prefix. The caller owns the descriptors,
 * the names and the list. Returns 0 or -ENOMEM.
 */
int cw_notify_passed_fds(const char *prefix, struct cw_passed_fd **ret, size_t *ret_n);

/*
 * Sends copies of the descriptors to the manager, which passes them to us again at the next start.
 * Waits at most 50 ms for a busy manager. After such a time-out, cw_notify_store_fds() and
 * cw_notify_remove_fds() send nothing for 10 s. Returns 0 (also without a manager), or -errno.
 */
int cw_notify_store_fds(const struct cw_clock *clock, const char *name, const int *fds, unsigned n);
/*
 * Makes the manager close all descriptors that it keeps under this name. Waits and returns like
 * cw_notify_store_fds().
 */
int cw_notify_remove_fds(const struct cw_clock *clock, const char *name);
