/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler plugin interface of the simulated NCCL. It loads the plugin by name like the real
 * one, and sends the same events in the same order from the same threads. Like the real one, our
 * NCCL 2.28 looks for version 5, then 4; SIM_NCCL_PROFILER names the newest version it looks for.
 */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ncclComm;
struct sim_task;

/* Loads the plugin at the first call; reports a communicator after the rendezvous of its ranks. */
void sim_profiler_init(struct ncclComm *comm);
void sim_profiler_finalize(struct ncclComm *comm);

/* NCCL's name of a communicator: commHash in the initialization of 2.26 and later (src/init.cc). */
uint64_t sim_profiler_hash(const ncclUniqueId *id);
uint64_t sim_profiler_child_hash(uint64_t parent, int count, int color);

/* A call joined the thread's group; depth: open groups, 1 = only the one around the call. */
void sim_profiler_call(const struct sim_task *task, int depth);

/* The outermost end of the thread's group begins, and ends. */
void sim_profiler_end_begins(void);
void sim_profiler_end_is_over(void);

/*
 * One launch: a collective, or a batch of sends and receives. Any thread. We report captured
 * launches at the capture, and no replay, like the real one if it needs no proxy
 * (hostStreamPlanTask() of src/enqueue.cc, 2.29.7). With a proxy we report each replay, and not the
 * capture. is_replay: the stream has reached a captured launch.
 */
void sim_profiler_launch(struct ncclComm *comm, struct sim_task *tasks, bool is_replay);

/*
 * The proxy's events (nccl_steps.h). NULL or nothing unless the plugin wants them and
 * SIM_NCCL_STEPS is set, which makes each connection a network connection.
 */
struct sim_profiler_part {
	void *launch; /* parent: the handle of the launch */
	int peer, steps, chunk_bytes;
	bool is_send;
};

void *sim_profiler_part_start(struct ncclComm *comm, const struct sim_profiler_part *part);
void *sim_profiler_step_start(struct ncclComm *comm, void *part, int step);
void sim_profiler_step_state(void *step, int state, size_t bytes);
void sim_profiler_stop(void *event);
