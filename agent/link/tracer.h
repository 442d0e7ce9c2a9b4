/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Yama lets a process be traced by its ancestors alone (scope 1), a daemon without
 * capabilities cannot take the native stacks of ranks that are not its children. The agent then
 * names the daemon to the kernel (PR_SET_PTRACER): one that runs as the rank's user. All other
 * checks of ptrace() stay.
 *
 * A process has one such name, which cannot be read: what the program has named before its first
 * NCCL call is replaced, what it names later replaces the daemon until the next registration.
 * COLLWATCH_PTRACER=off is for programs that need theirs.
 */
#pragma once

#include <sys/types.h>

/* Reads the environment. Once, in a thread of the application, before the helper thread is. */
void cw_tracer_start(void);

/*
 * Who listens at the other end of a connected Unix socket, if it shall be named: it has this
 * process' user for user, real, effective and saved, can be seen from here, and the file says 1. 0
 * else.
 */
pid_t cw_tracer_wanted(int socket, const char *scope_path);

/* The daemon behind socket has answered. The helper thread only; never fails visibly. */
void cw_tracer_name(int socket);
