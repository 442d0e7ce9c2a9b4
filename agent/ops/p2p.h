/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of point-to-point ops. Each communicator has a count and a rolling hash over the sizes,
 * per peer and direction. The counts of ops inside a group are pending until the group succeeds,
 * and are not in the record until then.
 */
#pragma once

#include <stdint.h>

#include "agent/ops/group.h"

#define CW_P2P_NO_PLACE UINT32_MAX

/* Counts of the pending ops of open groups. The record's counters do not include them yet. */
extern struct cw_p2p_pending cw_p2p_pending[CW_REC_P2P_BLOCKS][CW_REC_P2P_PEERS];

/* Returns the index of the direction in the record's pairs: 0 = sends, 1 = receives. */
static inline unsigned cw_p2p_direction(unsigned kind)
{
	return kind == CW_OP_RECV;
}

/*
 * Finds the peer's counters, and creates them on first use. Returns their index; CW_P2P_NO_PLACE if
 * there is no room.
 */
uint32_t cw_p2p_place(int c, int32_t peer);

/* Returns the seq of the next op to or from this peer. group: NULL outside of groups. */
uint64_t cw_p2p_next(int c, uint32_t place, unsigned direction, const struct cw_group *group);

/*
 * Counts an op that succeeded. Without a group the op counts at once, else as pending in the group.
 */
void cw_p2p_count(int c, uint32_t place, unsigned direction, uint64_t bytes,
		  struct cw_group *group);

/*
 * Ends a group for one communicator. With commit, the pending counts of the group become final;
 * otherwise we drop them.
 */
void cw_p2p_settle(struct cw_group_comm *gc, bool commit);
