/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler plugin interface of the simulated NCCL: loaded by name as the real one does it, told
 * the same events in the same order from the same threads. As in the real one, NCCL 2.28 looks for
 * version 5, then 4; SIM_NCCL_PROFILER names the newest version it looks for.
 */
#pragma once

#include <nccl.h>

struct ncclComm;
struct sim_task;

/* Loads the plugin at the first call; tells it of a communicator whose ranks have met. */
void sim_profiler_init(struct ncclComm *comm);
void sim_profiler_finalize(struct ncclComm *comm);

/* A call was added to the thread's group; depth: open groups, 1 = only the one around the call. */
void sim_profiler_call(const struct sim_task *task, int depth);

/* The outermost end of the thread's group begins, and is over. */
void sim_profiler_end_begins(void);
void sim_profiler_end_is_over(void);

/*
 * One launch: a collective, or a batch of sends and receives. Any thread. Of what is captured it is
 * told at the capture, and of no replay, as where the real one needs no proxy (hostStreamPlanTask()
 * of src/enqueue.cc, 2.29.7).
 */
void sim_profiler_launch(struct ncclComm *comm, const struct sim_task *tasks);
