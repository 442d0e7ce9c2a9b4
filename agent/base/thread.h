/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's own threads. The program must not notice them. */
#pragma once

/* Starts a detached thread with a small stack and all signals blocked. Return: 0 or -errno. */
int cw_thread_start(void *(*run)(void *), void *arg);
