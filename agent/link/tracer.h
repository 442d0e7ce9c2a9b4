/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets the daemon trace this process under Yama. With scope 1 only a process's ancestors may trace
 * it. A daemon without capabilities then cannot take the native stacks of ranks that are not its
 * children. The agent therefore names the daemon to the kernel as a tracer (PR_SET_PTRACER), if the
 * daemon runs as the rank's user. All other checks of ptrace() still apply.
 *
 * A process has only one such tracer, and we cannot read it. We replace a tracer that the program
 * named before its first NCCL call. If the program names one later, that one replaces the daemon
 * until the next registration. A program that needs its own tracer runs with COLLWATCH_PTRACER=off.
 */
#pragma once

#include <sys/types.h>

/* Reads COLLWATCH_PTRACER. A thread of the application calls it once, before cw_thread_start(). */
void cw_tracer_start(void);

/*
 * Decides whether to name the peer of a connected Unix socket as tracer. Returns the peer's pid;
 * 0 = name none. We name the peer if its uid is our real, effective and saved uid, and we can see
 * its pid. The file scope_path must also say 1.
 */
pid_t cw_tracer_wanted(int socket, const char *scope_path);

/*
 * Names the daemon behind socket as our tracer. Call this after the daemon has answered. Only the
 * helper thread calls it. A failure only appears in the log.
 */
void cw_tracer_name(int socket);
