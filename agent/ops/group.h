/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: what a thread queued between its outermost ncclGroupStart and ncclGroupEnd. Ops lie in
 * the rings already; here is only what must happen when the group ends: which communicators move
 * forward and by how much, which progress words are written, which communicators were made.
 *
 * There is no list of ops: the group's number in the rings finds them, so no group is too long.
 * Where tensors are summarised, it also keeps a bounded list of those to look at.
 * One group per thread, out of a fixed pool.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/ops/group_looks.h"
#include "agent/ops/ops.h"
#include "agent/record/record.h"

#define CW_GROUPS 64 /* threads inside a group at the same time */
#define CW_GROUP_PAIRS 128

struct cw_p2p_pending {
	uint64_t count[2];
	uint64_t hash[2]; /* valid where count is not 0 */
	uint32_t group;   /* low bits of the group that queued these, 0 = none */
	uint16_t next;    /* + 1, list of the communicator's touched peers */
};

struct cw_group_comm {
	uint16_t comm;
	uint16_t touched; /* + 1, first peer with pending p2p */
	uint64_t colls;
	uint64_t signature_sum;
	uint64_t first_ticket; /* of the communicator's own ring */
	uint16_t part_plus_1;  /* of the CUDA graph that its ops are captured into, 0 = none */
	uint32_t captured_ops;
	cudaStream_t captured_stream;
};

struct cw_group_pair {
	uint16_t comm;
	uint16_t slot;
	cudaStream_t stream;
	uint64_t op_index; /* newest */
};

struct cw_group {
	uint32_t is_used;
	uint64_t id;
	uint64_t first_ticket; /* of the bulk ring */
	unsigned comm_count, pair_count, made_count;
	uint8_t place[CW_REC_COMMS]; /* in comms, + 1 */
	struct cw_group_comm comms[CW_REC_COMMS];
	struct cw_group_pair pairs[CW_GROUP_PAIRS];
	struct {
		uint16_t comm;
		ncclComm_t *where;
	} made[CW_REC_COMMS];
	struct cw_group_looks looks; /* last: nobody comes here where summaries are off */
};

/* A group begins in this thread; NULL in cw_tls.group afterwards when the pool is empty. */
void cw_group_begin(void);

/* The communicator's part of the group, made when it is the first op on it. */
struct cw_group_comm *cw_group_comm(struct cw_group *group, int c);

/* Notes a stream to write progress to; false when there are too many. */
bool cw_group_pair(struct cw_group *group, int c, uint16_t slot, cudaStream_t stream,
		   uint64_t op_index);

/* A communicator was made inside the group; its handle appears at *where. */
void cw_group_made(struct cw_group *group, int c, ncclComm_t *where);

/* The outermost end is about to be called, and launches: looks at what the ops are fed. */
void cw_group_prepare(struct cw_group *group);

/* The ops count as launching. */
void cw_group_launch(struct cw_group *group);

/* The group is over: committed when it was launched successfully, else dropped. */
void cw_group_finish(struct cw_group *group, ncclResult_t result, bool launched);
