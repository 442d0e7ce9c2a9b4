/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes of the children that touch other processes. Call both functions only in a child,
 * because neither can be undone.
 */
#pragma once

#include <sys/types.h>

/*
 * Drops all rights of the taker but the rights to trace and to read /proc. The taker dies with its
 * parent.
 */
void cw_stack_confine_taker(void);

/*
 * Confines the unwinder before it reads the first byte of the rank's files. It becomes uid and gid
 * (with CAP_SETUID and CAP_SETGID), has no capabilities and cannot gain any, and the rank's user
 * cannot trace it. Memory and time are limited. Seccomp allows only the system calls that unwinding
 * needs; others fail with EPERM. It can open files for reading only. 0 or -errno; after -errno the
 * caller must not continue.
 */
int cw_stack_confine_unwinder(uid_t uid, gid_t gid);
