/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the threads of this process that NCCL and the CUDA driver started. NCCL's proxy thread
 * polls the network on a whole core for as long as a call waits. It carries the name of the thread
 * that created the communicator. The proxy computes nothing and runs no Python, so the daemon must
 * not take its CPU time for progress.
 *
 * A thread belongs to the library that contains its start routine. A std::thread belongs to the
 * library that contains the virtual table of its function object. glibc publishes the offsets of
 * these fields for debuggers (_thread_db_*, as libthread_db reads them). We read all of it as
 * memory that the program may unmap at any time.
 *
 * We know nothing about threads of another C library, or about threads on stacks that the program
 * allocated. We count such threads as the program's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Looks up glibc's offsets through the loader. Call this once, before cw_link_start(). */
void cw_helper_threads_start(void);

/*
 * Walks the current threads and stores the helpers in the record. Only our helper thread calls
 * this.
 */
void cw_helper_threads_step(void);

/* True if the last step found this thread to be a helper. Only our helper thread calls this. */
bool cw_helper_threads_has(uint32_t tid);
