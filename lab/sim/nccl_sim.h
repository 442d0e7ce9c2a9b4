/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the simulated NCCL, libnccl.so.2. The files, in the order in which an op passes
 * through them:
 *
 *	nccl_api.c	public functions: check the arguments, make a task
 *	nccl_group.c	collect the tasks of a group; at its end connect and launch
 *	nccl_launch.c	queue a launch on a stream; order the launches of a communicator
 *	nccl_coll.c	run a collective when the stream reaches it
 *	nccl_p2p.c	run a batch of sends and receives
 *	nccl_link.c	messages over one connection
 *	nccl_reduce.c	arithmetic on data types
 *	nccl_profiler.c	report calls and launches to a profiler plugin
 *	nccl_steps.c	report the steps of each connection to the plugin
 *
 * Communicators are in nccl_comm.c (lifetime), nccl_bootstrap.c (rendezvous of ranks) and
 * nccl_net.c (sockets).
 */
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lab/sim/nccl_comm.h"

/* Defines ncclX (weak) and pncclX as two names of one function, as NCCL does. */
#define NCCL_API(ret, name, ...)                                                                   \
	ret pnccl##name(__VA_ARGS__) __attribute__((alias("nccl" #name)));                         \
	__attribute__((weak)) ret nccl##name(__VA_ARGS__)

/* ---- nccl_error.c ---- */

/*
 * Stores the text for ncclGetLastError, prints it on stderr with NCCL_DEBUG=WARN, and returns
 * @result.
 */
ncclResult_t sim_fail(ncclResult_t result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- tasks: the requests of public functions ---- */

enum sim_kind {
	SIM_ALL_REDUCE = 1,
	SIM_BROADCAST,
	SIM_REDUCE,
	SIM_ALL_GATHER,
	SIM_REDUCE_SCATTER,
	SIM_SEND,
	SIM_RECV,
};

struct sim_task {
	struct sim_task *next;
	enum sim_kind kind;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t dtype;
	ncclRedOp_t op;
	double scalar; /* factor of a user-made operator */
	int root;      /* root, or peer of a send or receive */
	ncclComm_t comm;
	CUstream stream;
	void *profiler; /* the plugin's handle for the call */
	void *launched; /* the plugin's handle for the launch */
};

static inline bool sim_is_p2p(const struct sim_task *t)
{
	return t->kind == SIM_SEND || t->kind == SIM_RECV;
}

/* ---- nccl_group.c ---- */

/* A blocking job at the end of a group: a split if @group is set, else an init. */
struct sim_job {
	struct sim_job *next;
	ncclComm_t comm; /* the new communicator, or the parent of a split; holds a reference */
	ncclComm_t *newcomm;
	ncclResult_t result;
	ncclUniqueId id;
	int *group; /* owned */
	int num_group;
	uint32_t ordinal;
	int color;
	int split_key;
	bool has_config;
	ncclConfig_t config;
};

void sim_group_start(void);
/*
 * Ends a group. info: the outermost end makes communicators but launches nothing; NULL = it does
 * everything.
 */
ncclResult_t sim_group_end(ncclSimInfo_t *info);
/* Copies the task into the open group. */
ncclResult_t sim_group_add(const struct sim_task *task);
/*
 * Copies the job into the open group. Takes over job->group and the reference job->comm, also on
 * failure.
 */
ncclResult_t sim_group_add_job(const struct sim_job *job);
/* Records that a call inside the group failed, so that the group fails. */
ncclResult_t sim_group_note(ncclResult_t result);

/* ---- nccl_launch.c ---- */

/*
 * Queues the tasks on their stream: one collective, or a batch of sends and receives. Takes over
 * the tasks. Does not block, except under SIM_NCCL_SPIN.
 */
ncclResult_t sim_launch(ncclComm_t comm, struct sim_task *tasks);
/* Blocks until all launches on the communicator have run. */
void sim_launch_drain(ncclComm_t comm);
/* Blocks until a link can make progress or the communicator is aborted. */
void sim_links_wait(ncclComm_t comm, struct sim_link *links, const bool *wants_input);
/* Frees the launches in graphs. */
void sim_launches_free(ncclComm_t comm);
void sim_tasks_free(struct sim_task *tasks);

/* ---- nccl_coll.c, nccl_p2p.c: run on the stream, return when done or aborted ---- */

void sim_coll_run(ncclComm_t comm, const struct sim_task *task);
void sim_p2p_run(ncclComm_t comm, const struct sim_task *tasks);
