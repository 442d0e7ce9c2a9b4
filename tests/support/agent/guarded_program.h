/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of the user NOBODY whose program is guarded against being read by its user, or is not. The
 * ranks are copies of the test itself and sleep in read(). Needs root, and a /tmp on a file system
 * that is not mounted nosuid.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define NOBODY 65534

enum guard {
	GUARD_NONE,
	GUARD_UNREADABLE,   /* mode 0711 */
	GUARD_SETUID,       /* setuid program of root */
	GUARD_SETGID,       /* setgid program of another group */
	GUARD_CAPABILITIES, /* the file has capabilities */
	GUARD_WITHDRAWN,    /* the process calls PR_SET_DUMPABLE 0 */
	GUARD_AMBIENT,      /* the process keeps a capability, and is dumpable */
	/* the process is in NOBODY's user namespace, where it has every capability */
	GUARD_NAMESPACE,
};

/* Skips the test if this machine cannot run such programs. */
void guarded_set_up(void);
void guarded_tear_down(void); /* kills the ranks that we started */

/*
 * Starts a rank and returns its pid once it sleeps. then: the guard that the rank takes when the
 * test calls guarded_become().
 */
pid_t guarded_start(enum guard guard, enum guard then);
/* Makes the rank execute the program with its second guard, under the same pid. */
void guarded_become(pid_t pid);
uint64_t guarded_start_ticks(pid_t pid);
