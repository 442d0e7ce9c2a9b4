/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the agent's own, which the program must not notice. */
#pragma once

/* Starts one: detached, small stack, every signal blocked. Return: 0 or -errno. */
int cw_thread_start(void *(*run)(void *), void *arg);
