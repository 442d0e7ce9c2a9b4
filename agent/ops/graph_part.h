/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part holds the ops of one communicator in one CUDA graph. In the record the ops are a chain of
 * runs of equal ops (struct cw_rec_replay, struct cw_rec_template). This file adds the agent's own
 * state. A part lives as long as its graph or an executable graph made from that graph. It also
 * outlives its last launch, because the device writes its progress words until that launch ends.
 *
 * The caller holds the lock, except for the inline functions and cw_graph_is_idle().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"
#include "agent/record/record.h"

struct cw_graph_part {
	uintptr_t graph; /* the graph's handle; 0 = destroyed */
	uint64_t capture_id;
	/* Generation of this part; while the part is unused, that of its last use. */
	uint32_t generation;
	uint32_t execs;
	uint32_t last_plus_1; /* index + 1 of the newest run */
	uint16_t slot;        /* slot of the part's progress words; CW_REC_NO_SLOT = none */
	bool is_used;
	/* Progress slot of the last launch, CW_REC_NO_SLOT = none. */
	uint16_t launch_slot;
	uint64_t launch_op; /* op_index of the last launch, 0 = never launched */
	cudaStream_t launch_stream;
};

extern struct cw_graph_part cw_graph_parts[CW_REC_REPLAYS];

/*
 * Takes the lock of all graph tables. Spins while another thread changes the tables. No thread
 * holds the lock across a call into CUDA.
 */
void cw_graph_lock(void);
void cw_graph_unlock(void);

static inline struct cw_rec_replay *cw_graph_replay_of(const struct cw_graph_part *part)
{
	return &cw_record.replays[part - cw_graph_parts];
}

static inline int cw_graph_comm_of(const struct cw_graph_part *part)
{
	return (int)CW_LOAD(cw_graph_replay_of(part)->comm_plus_1) - 1;
}

/* Marks the communicator as uncounted. From now on its numbers mean nothing. */
static inline void cw_graph_uncounted(int c)
{
	(void)__atomic_fetch_or(&cw_record.comms[c].flags, CW_REC_COMM_UNCOUNTED, __ATOMIC_RELAXED);
}

/* Returns a new part; NULL = all parts are in use. */
struct cw_graph_part *cw_graph_part_new(void *graph, uint64_t capture_id, int c);

/*
 * Notes that the program destroyed the graph. It may still launch executable graphs made from that
 * graph.
 */
static inline void cw_graph_part_left(struct cw_graph_part *part)
{
	part->graph = 0;
	CW_STORE(cw_graph_replay_of(part)->graph, (uint64_t)0);
}

/* Finds the part of communicator c in a graph that still exists; NULL = none. */
struct cw_graph_part *cw_graph_part_find(const void *graph, int c);

/* Adds op->repeat equal ops. Returns false if they do not fit. */
bool cw_graph_part_append(struct cw_graph_part *part, const struct cw_rec_template *op);

/* Removes the newest `count` ops. */
void cw_graph_part_take_back(struct cw_graph_part *part, uint32_t count);

/*
 * Returns whether we know that the part's last launch ended on the device, or there was no launch.
 */
bool cw_graph_is_idle(const struct cw_graph_part *part, int c);
