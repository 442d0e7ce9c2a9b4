/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service manager is told and gives: readiness, stopping, the watchdog, listening
 * descriptors. All of it does nothing where there is no service manager. Does not block, but for
 * a manager that does not read: readiness, reload and stopping wait 1 s at most.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_clock;

void cw_notify_ready(const char *status);
/* Between reading a new configuration and being ready again. */
void cw_notify_reloading(int64_t monotonic_ns);
void cw_notify_stopping(void);
void cw_notify_status(const char *status);

/* The watchdog's period in ns, or 0 when none is set: call cw_notify_alive() twice as often. */
int64_t cw_notify_watchdog_ns(void);
void cw_notify_alive(void);

/* The descriptor passed under this FileDescriptorName for a UNIX stream socket; -1 = none. */
int cw_notify_listen_fd(const char *name);

/* Descriptors passed under names that begin with prefix. */
struct cw_passed_fd {
	int fd;
	char *name;
};
/* The caller owns the descriptors, the names and the list. 0 or -ENOMEM. */
int cw_notify_passed_fds(const char *prefix, struct cw_passed_fd **ret, size_t *ret_n);

/*
 * Has the manager keep copies of the descriptors, passed again at the next start. Waits 50 ms at
 * most for a manager that is busy; after that nothing of this kind is sent for 10 s. 0 (also where
 * there is none), or -errno.
 */
int cw_notify_store_fds(const struct cw_clock *clock, const char *name, const int *fds, unsigned n);
/* It forgets all it keeps under that name. Waits likewise. */
int cw_notify_remove_fds(const struct cw_clock *clock, const char *name);
