/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the children that touch other processes are fenced in. Both may only be called in a child:
 * there is no way back.
 */
#pragma once

#include <sys/types.h>

/* The taker keeps the right to trace and to read /proc, nothing else; it dies with its parent. */
void cw_stack_confine_taker(void);

/*
 * The unwinder, before it looks at the first byte of the rank's files: becomes uid and gid (with
 * CAP_SETUID and CAP_SETGID), has no capabilities, may not gain any, cannot be traced by the rank's
 * user, has limited memory and time, and only the system calls unwinding needs (seccomp; others
 * fail with EPERM). Files can be opened for reading only. 0 or -errno: then it must not go on.
 */
int cw_stack_confine_unwinder(uid_t uid, gid_t gid);
