/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler plugin interface of the simulated NCCL. It loads the plugin by name like the real
 * one, and sends the same events in the same order from the same threads. Like the real one, our
 * NCCL 2.28 looks for version 5, then 4; SIM_NCCL_PROFILER names the newest version it looks for.
 */
#pragma once

#include <nccl.h>

struct ncclComm;
struct sim_task;

/* Loads the plugin at the first call; reports a communicator after the rendezvous of its ranks. */
void sim_profiler_init(struct ncclComm *comm);
void sim_profiler_finalize(struct ncclComm *comm);

/* A call joined the thread's group; depth: open groups, 1 = only the one around the call. */
void sim_profiler_call(const struct sim_task *task, int depth);

/* The outermost end of the thread's group begins, and ends. */
void sim_profiler_end_begins(void);
void sim_profiler_end_is_over(void);

/*
 * One launch: a collective, or a batch of sends and receives. Any thread. We report captured
 * launches at the capture, and no replay, like the real one if it needs no proxy
 * (hostStreamPlanTask() of src/enqueue.cc, 2.29.7).
 */
void sim_profiler_launch(struct ncclComm *comm, const struct sim_task *tasks);
