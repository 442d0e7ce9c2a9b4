/* SPDX-License-Identifier: Apache-2.0 */
/* Starts threads of the agent. The program must not notice these threads. */
#pragma once

/* Starts a detached thread with a small stack and all signals blocked. Returns 0 or -errno. */
int cw_thread_start(void *(*run)(void *), void *arg);
