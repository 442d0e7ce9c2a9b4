/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each peer has counters in the record, and pending counters in a private table of the agent. A
 * group links the pending counters that it changed, per communicator. At its end it therefore
 * settles them without a search.
 */
#include "agent/ops/p2p.h"

#include <stddef.h>

#include "agent/record/comms.h"
#include "model/signature.h"

#define PROBES 16

/* One entry for each peer in the record's blocks. */
struct cw_p2p_pending cw_p2p_pending[CW_REC_P2P_BLOCKS][CW_REC_P2P_PEERS];

static struct cw_rec_p2p_peer *peer_at(int c, uint32_t place)
{
	uint32_t block = CW_LOAD(cw_record.comms[c].p2p_block);

	return block ? &cw_record.p2p[block - 1].peers[place] : NULL;
}

static struct cw_p2p_pending *pending_at(int c, uint32_t place)
{
	uint32_t block = CW_LOAD(cw_record.comms[c].p2p_block);

	return block ? &cw_p2p_pending[block - 1][place] : NULL;
}

/*
 * Finds the place of a peer. In a communicator of up to 256 ranks each peer has its own place. In a
 * larger one, the first peers to arrive take the places.
 */
uint32_t cw_p2p_place(int c, int32_t peer)
{
	struct cw_rec_p2p_block *block = cw_comm_p2p(c);

	if (!block || peer < 0)
		return CW_P2P_NO_PLACE;
	for (uint32_t n = 0; n < PROBES; n++) {
		uint32_t place = ((uint32_t)peer + n) % CW_REC_P2P_PEERS;
		uint32_t owner = CW_LOAD(block->peers[place].peer_plus_1);

		if (!owner && __atomic_compare_exchange_n(&block->peers[place].peer_plus_1, &owner,
							  (uint32_t)peer + 1, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			owner = (uint32_t)peer + 1;
		if (owner == (uint32_t)peer + 1)
			return place;
	}
	return CW_P2P_NO_PLACE;
}

static bool is_of(const struct cw_p2p_pending *p, const struct cw_group *group)
{
	return group && p->group == (uint32_t)group->id;
}

uint64_t cw_p2p_next(int c, uint32_t place, unsigned direction, const struct cw_group *group)
{
	const struct cw_rec_p2p_peer *peer = peer_at(c, place);
	const struct cw_p2p_pending *p = pending_at(c, place);

	if (!peer)
		return 0;
	return CW_LOAD(peer->count[direction]) + (is_of(p, group) ? p->count[direction] : 0) + 1;
}

static void count_now(int c, struct cw_rec_p2p_peer *peer, unsigned direction, uint64_t n,
		      uint64_t hash)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];

	CW_STORE(peer->count[direction], peer->count[direction] + n);
	CW_STORE(peer->hash[direction], hash);
	CW_STORE(rc->p2p_total[direction], rc->p2p_total[direction] + n);
}

static uint64_t step(uint64_t count, uint64_t hash, uint64_t bytes)
{
	return cw_hash_commit(count ? hash : CW_HASH_INIT, cw_hash_mix64(bytes));
}

void cw_p2p_count(int c, uint32_t place, unsigned direction, uint64_t bytes, struct cw_group *group)
{
	struct cw_rec_p2p_peer *peer = peer_at(c, place);
	struct cw_p2p_pending *p = pending_at(c, place);
	struct cw_group_comm *gc;

	if (!peer)
		return;
	if (!group) {
		count_now(c, peer, direction, 1,
			  step(peer->count[direction], peer->hash[direction], bytes));
		return;
	}
	gc = cw_group_comm(group, c);
	if (!is_of(p, group)) {
		*p = (struct cw_p2p_pending){ .group = (uint32_t)group->id, .next = gc->touched };
		gc->touched = (uint16_t)(place + 1);
		for (unsigned d = 0; d < 2; d++)
			p->hash[d] = peer->count[d] ? peer->hash[d] : CW_HASH_INIT;
	}
	p->hash[direction] = cw_hash_commit(p->hash[direction], cw_hash_mix64(bytes));
	p->count[direction]++;
}

void cw_p2p_settle(struct cw_group_comm *gc, bool commit)
{
	uint16_t at = gc->touched;

	/*
	 * Limit the loop: another thread that misuses the communicator may have linked the list in
	 * a circle.
	 */
	for (unsigned n = 0; at && n < CW_REC_P2P_PEERS; n++) {
		struct cw_rec_p2p_peer *peer = peer_at(gc->comm, at - 1u);
		struct cw_p2p_pending *p = pending_at(gc->comm, at - 1u);

		if (!peer)
			break;
		for (unsigned d = 0; d < 2 && commit; d++) {
			if (p->count[d])
				count_now(gc->comm, peer, d, p->count[d], p->hash[d]);
		}
		at = p->next;
		p->group = 0;
	}
	gc->touched = 0;
}
