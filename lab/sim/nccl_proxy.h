/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy thread of the simulated NCCL: one per process, started with the first communicator
 * under SIM_NCCL_PROXY. It has its creator's name, like NCCL's. While a collective waits for the
 * network it polls on a whole core. It runs at a nice level, because tests do not measure its
 * effect on others.
 */
#pragma once

/* Starts the thread if it is enabled and not running yet. Any thread. */
void sim_proxy_start(void);

/* A collective begins, or ends, its wait for the network. Any thread. */
void sim_proxy_begin(void);
void sim_proxy_end(void);
