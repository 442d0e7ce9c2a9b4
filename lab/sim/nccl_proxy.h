/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy thread of the simulated NCCL. There is one per process. It starts with the first
 * communicator if SIM_NCCL_PROXY is set. It has the name of the thread that created it, like
 * NCCL's. While a collective waits for the network, it polls on a whole core. It runs at a nice
 * level, because tests do not measure its effect on other threads.
 */
#pragma once

/* Starts the thread if it is enabled and not running yet. Any thread. */
void sim_proxy_start(void);

/* Mark the beginning and the end of a collective's wait for the network. Any thread. */
void sim_proxy_begin(void);
void sim_proxy_end(void);
