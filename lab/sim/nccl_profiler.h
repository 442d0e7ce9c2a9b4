/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler plugin interface of the simulated NCCL. It loads the plugin by name like the real
 * NCCL, and sends the same events in the same order from the same threads. Like the real NCCL 2.28,
 * it looks for version 5, then 4. SIM_NCCL_PROFILER is the newest version that it looks for.
 */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ncclComm;
struct sim_task;

/*
 * Loads the plugin at the first call. Reports a communicator to the plugin; call it after the
 * rendezvous of the ranks.
 */
void sim_profiler_init(struct ncclComm *comm);
void sim_profiler_finalize(struct ncclComm *comm);

/*
 * Returns NCCL's hash of a communicator: commHash in the initialization of 2.26 and later
 * (src/init.cc).
 */
uint64_t sim_profiler_hash(const ncclUniqueId *id);
uint64_t sim_profiler_child_hash(uint64_t parent, int count, int color);

/*
 * Reports a call that joined the thread's group. depth: number of open groups; 1 = only the group
 * around the call.
 */
void sim_profiler_call(const struct sim_task *task, int depth);

/* Report the beginning and the end of the thread's outermost ncclGroupEnd. */
void sim_profiler_end_begins(void);
void sim_profiler_end_is_over(void);

/*
 * Reports one launch: a collective, or a batch of sends and receives. Any thread. We report a
 * captured launch at the capture and not at its replays, like real NCCL if it needs no proxy
 * (hostStreamPlanTask() of src/enqueue.cc, 2.29.7). With a proxy we report each replay, and not the
 * capture. is_replay: the stream has reached a captured launch.
 */
void sim_profiler_launch(struct ncclComm *comm, struct sim_task *tasks, bool is_replay);

/*
 * The proxy's events (nccl_steps.h). Without SIM_NCCL_STEPS, or if the plugin does not want them,
 * the functions do nothing and return NULL. SIM_NCCL_STEPS makes each connection a network
 * connection.
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
