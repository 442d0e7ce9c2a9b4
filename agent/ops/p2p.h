/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of point-to-point ops: per communicator, peer and direction, a count and a rolling hash
 * over the sizes. Inside a group they are kept pending beside the record until the group succeeded.
 */
#pragma once

#include <stdint.h>

#include "agent/ops/group.h"

#define CW_P2P_NO_PLACE UINT32_MAX

/* What open groups have queued, beside the record's counters. */
extern struct cw_p2p_pending cw_p2p_pending[CW_REC_P2P_BLOCKS][CW_REC_P2P_PEERS];

/* 0 = sends, 1 = receives: index of the pairs in the record. */
static inline unsigned cw_p2p_direction(unsigned kind)
{
	return kind == CW_OP_RECV;
}

/* Where the peer's counters lie, made on first use; CW_P2P_NO_PLACE when there is no room. */
uint32_t cw_p2p_place(int c, int32_t peer);

/* The number the next op would have. group: NULL outside of groups. */
uint64_t cw_p2p_next(int c, uint32_t place, unsigned direction, const struct cw_group *group);

/* The op succeeded: counts it at once, or as pending in the group. */
void cw_p2p_count(int c, uint32_t place, unsigned direction, uint64_t bytes,
		  struct cw_group *group);

/* The end of a group for one of its communicators: pending counts become final or vanish. */
void cw_p2p_settle(struct cw_group_comm *gc, bool commit);
