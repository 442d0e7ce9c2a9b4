/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy thread of the simulated NCCL: one a process, started with the first communicator
 * under SIM_NCCL_PROXY. It has its maker's name, as NCCL's has, and while a collective waits for
 * the network it polls on a whole core. It is nice to others: their time is no part of what is
 * tested.
 */
#pragma once

/* Starts the thread where there is to be one and none yet. Any thread. */
void sim_proxy_start(void);

/* A collective begins, ends, to wait for the network. Any thread. */
void sim_proxy_begin(void);
void sim_proxy_end(void);
