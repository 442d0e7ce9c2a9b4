/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confines children that touch other processes. Neither function can be undone, so call them only
 * in a child.
 */
#pragma once

#include <sys/types.h>

/*
 * Confines the taker, the process that traces a rank and copies its stacks. Drops all rights except
 * those to trace and to read /proc. The taker dies with its parent. Returns 0, or -EPERM if rights
 * remain. After an error the caller must not continue.
 */
int cw_stack_confine_taker(void);

/*
 * Confines the unwinder, before it reads the first byte of the rank's files. If it has CAP_SETUID
 * and CAP_SETGID, it becomes uid and gid. It has no capabilities afterwards and cannot gain any.
 * The rank's user cannot trace it. Its memory and CPU time are limited. Seccomp allows only the
 * system calls that unwinding needs; others fail with EPERM. It can open files only for reading.
 * Returns 0 or -errno. After an error the caller must not continue.
 */
int cw_stack_confine_unwinder(uid_t uid, gid_t gid);
