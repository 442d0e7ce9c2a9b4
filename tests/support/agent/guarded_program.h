/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of NOBODY whose program guards itself against its user, or does not. They are copies of the
 * test itself and sleep in read(). Needs root and a file system for /tmp that is not nosuid.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define NOBODY 65534

enum guard {
	GUARD_NONE,
	GUARD_UNREADABLE,   /* mode 0711 */
	GUARD_SETUID,       /* root's */
	GUARD_SETGID,       /* of another group */
	GUARD_CAPABILITIES, /* of the file */
	GUARD_WITHDRAWN,    /* PR_SET_DUMPABLE 0 */
	GUARD_AMBIENT,      /* keeps a capability, and is dumpable */
	GUARD_NAMESPACE,    /* in NOBODY's user namespace, where it has every capability */
};

/* Skips the test where there are no such programs. */
void guarded_set_up(void);
void guarded_tear_down(void); /* kills what was started */

/*
 * Returns the pid of the rank once it sleeps. `then`: the guard that the rank takes on
 * guarded_become().
 */
pid_t guarded_start(enum guard guard, enum guard then);
/* The rank starts the other program, under the same pid. */
void guarded_become(pid_t pid);
uint64_t guarded_start_ticks(pid_t pid);
