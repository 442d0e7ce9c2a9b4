/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets the daemon trace this process under Yama. With scope 1 only a process's ancestors may trace
 * it. A daemon without capabilities then cannot take the native stacks of ranks that are not its
 * children. If the daemon runs as the rank's user, the agent therefore names the daemon to the
 * kernel as a tracer (PR_SET_PTRACER). All other checks of ptrace() still apply.
 *
 * A process has only one such tracer, and we cannot read which. We replace a tracer that the
 * program named before its first NCCL call. A tracer that the program names later replaces the
 * daemon until the next registration. A program that needs its own tracer runs with
 * COLLWATCH_PTRACER=off.
 */
#pragma once

#include <sys/types.h>

/*
 * Reads COLLWATCH_PTRACER. A thread of the application calls this function once, before
 * cw_thread_start().
 */
void cw_tracer_start(void);

/*
 * Decides whether to name the peer of a connected Unix socket as tracer. Returns the peer's pid; 0
 * = name none. We name the peer under three conditions. Its uid is our real, effective and saved
 * uid. We can see its pid. The file scope_path says 1.
 */
pid_t cw_tracer_wanted(int socket, const char *scope_path);

/*
 * Names the daemon behind socket as our tracer. Only the helper thread calls this function, after
 * the daemon has answered. A failure only appears in the log.
 */
void cw_tracer_name(int socket);
