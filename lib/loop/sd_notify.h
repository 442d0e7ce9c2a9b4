/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager: we report readiness, stopping and the watchdog, and take listening
 * descriptors from it. Without a service manager all functions do nothing. They do not block,
 * except for a manager that does not read: readiness, reload and stopping wait at most 1 s.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_clock;

void cw_notify_ready(const char *status);
/* Call it when a reload begins; cw_notify_ready() ends the reload. */
void cw_notify_reloading(int64_t monotonic_ns);
void cw_notify_stopping(void);
void cw_notify_status(const char *status);

/* The watchdog's period in ns; 0 = no watchdog. Call cw_notify_alive() twice per period. */
int64_t cw_notify_watchdog_ns(void);
void cw_notify_alive(void);

/* The UNIX stream socket that the manager passed under this FileDescriptorName; -1 = none. */
int cw_notify_listen_fd(const char *name);

/* A descriptor that the manager passed, and its name. */
struct cw_passed_fd {
	int fd;
	char *name;
};
/*
 * Returns the descriptors whose name begins with prefix. The caller owns the descriptors, the names
 * and the list. 0 or -ENOMEM.
 */
int cw_notify_passed_fds(const char *prefix, struct cw_passed_fd **ret, size_t *ret_n);

/*
 * Sends copies of the descriptors to the manager, which passes them again at the next start. Waits
 * at most 50 ms for a busy manager. After such a time-out we send nothing of this kind for 10 s. 0
 * (also without a manager), or -errno.
 */
int cw_notify_store_fds(const struct cw_clock *clock, const char *name, const int *fds, unsigned n);
/* The manager closes all descriptors that it keeps under this name. Waits likewise. */
int cw_notify_remove_fds(const struct cw_clock *clock, const char *name);
