/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: the ops that a thread queues between its outermost ncclGroupStart and ncclGroupEnd. The
 * rings hold the ops already. The group holds only the work for its end: the communicators that
 * advance and by how much, the progress writes, and the new communicators.
 *
 * There is no list of ops, so no group is too long. We find the ops of a group in the rings by the
 * group's number. If summaries are on, the group also has a list of tensors to summarise, with a
 * limit. A fixed pool provides one group per thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/ops/group_samples.h"
#include "agent/ops/ops.h"
#include "agent/record/record.h"

#define CW_GROUPS 64 /* the most threads that are inside a group at the same time */
#define CW_GROUP_PAIRS 128

struct cw_p2p_pending {
	uint64_t count[2];
	uint64_t hash[2]; /* valid where count is not 0 */
	uint32_t group;   /* low bits of the id of the group that queued the ops, 0 = none */
	/* Index + 1 of the next peer in the communicator's list of touched peers. */
	uint16_t next;
};

struct cw_group_comm {
	uint16_t comm;
	uint16_t touched; /* index + 1 of the first peer with pending p2p ops */
	uint64_t colls;
	uint64_t signature_sum;
	uint64_t first_ticket; /* first ticket in the communicator's own ring */
	/* index + 1 of the CUDA graph's part that captures these ops, 0 = none */
	uint16_t part_plus_1;
	uint32_t captured_ops;
	cudaStream_t captured_stream;
};

struct cw_group_pair {
	uint16_t comm;
	uint16_t slot;
	cudaStream_t stream;
	uint64_t op_index; /* the newest op */
};

struct cw_group {
	uint32_t is_used;
	uint64_t id;
	uint64_t first_ticket; /* first ticket in the bulk ring */
	unsigned comm_count, pair_count, made_count;
	uint8_t place[CW_REC_COMMS]; /* for each communicator: its index in comms + 1; 0 = none */
	struct cw_group_comm comms[CW_REC_COMMS];
	struct cw_group_pair pairs[CW_GROUP_PAIRS];
	struct {
		uint16_t comm;
		ncclComm_t *where;
	} made[CW_REC_COMMS];
	struct cw_group_samples samples; /* last, because we do not touch it if summaries are off */
};

/* Begins a group in this thread. If the pool has no free group, cw_tls.group is NULL afterwards. */
void cw_group_begin(void);

/* Finds the communicator's entry in the group; its first op creates the entry. */
struct cw_group_comm *cw_group_comm(struct cw_group *group, int c);

/* Adds a stream to the progress writes at launch and end. Returns false if the list is full. */
bool cw_group_pair(struct cw_group *group, int c, uint16_t slot, cudaStream_t stream,
		   uint64_t op_index);

/*
 * Notes that the program creates communicator c inside the group. NCCL will store its handle at
 * *where.
 */
void cw_group_made(struct cw_group *group, int c, ncclComm_t *where);

/*
 * Summarises the inputs of the group. Call this function right before an outermost end that
 * launches.
 */
void cw_group_prepare(struct cw_group *group);

/* Marks the group's ops as launching. Until then they are marked as queued. */
void cw_group_launch(struct cw_group *group);

/* Ends the group. Commits its ops if it launched successfully, and drops them otherwise. */
void cw_group_finish(struct cw_group *group, ncclResult_t result, bool launched);
