/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads of this process NCCL and the CUDA driver started: NCCL's proxy polls the network
 * for as long as a call waits, on a whole core, under the name of whoever made the communicator.
 * It computes nothing and runs no Python, so the daemon must not take its CPU time for work.
 *
 * A thread belongs to the library in which its start routine lies; of a std::thread, to the one
 * that holds the virtual table of what it runs. glibc says for debuggers where it keeps these
 * (_thread_db_*, as libthread_db reads them). Everything is read as memory that may not be there.
 * With another C library, and for threads on stacks of the program's own, nothing is known: such
 * threads count as the program's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Asks the loader where glibc keeps its threads. Once, before cw_link_start(). */
void cw_helper_threads_start(void);

/* Looks at the threads there are and notes the helpers in the record. The helper thread only. */
void cw_helper_threads_step(void);

/* Whether the last step noted this thread. The helper thread only. */
bool cw_helper_threads_has(uint32_t tid);
