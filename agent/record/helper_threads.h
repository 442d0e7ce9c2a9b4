/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the threads of this process that NCCL and the CUDA driver started. NCCL's proxy thread
 * polls the network on a whole core for as long as a call waits. It has the name of the thread that
 * created the communicator. The proxy computes nothing and runs no Python. If the daemon took its
 * CPU time for progress of the program, it would not see the hang.
 *
 * A thread belongs to the library that contains its start routine. A std::thread belongs to the
 * library that contains the virtual table of its function object. glibc publishes the offsets of
 * these fields for debuggers (_thread_db_*, as libthread_db reads them). We read all of this as
 * memory that the program may unmap at any time.
 *
 * We know nothing about threads of another C library, or about threads on stacks that the program
 * allocated. We count such threads as the program's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Finds glibc's offsets through the loader. Call this function once, before cw_link_start(). */
void cw_helper_threads_start(void);

/*
 * Finds the current helper threads and stores them in the record. Only the agent's own thread calls
 * this function.
 */
void cw_helper_threads_step(void);

/*
 * Returns whether the last cw_helper_threads_step() found this thread to be a helper thread. Only
 * the agent's own thread calls this function.
 */
bool cw_helper_threads_has(uint32_t tid);
