/* SPDX-License-Identifier: Apache-2.0 */
#include "import/fr_exchange.h"

#include "common/or_exit/or_exit.h"

/*
 * The minor of dump version 2.4, the first one with both the input and the output sizes
 * (torch/distributed/flight_recorder, error_analysis()).
 */
#define HAS_SIZES_SINCE 4u

/* Returns the size that a member receives if is_taken is true, otherwise the size that it sends. */
static uint64_t size_of(const struct cw_fr_op *op, bool is_taken)
{
	return is_taken ? op->taken : op->sent;
}

/*
 * Returns the member's call with number seq. NULL = the member lists no such call, or the sizes of
 * the call are unknown.
 */
static const struct cw_fr_op *exchange_of(const struct fr_place *place, uint64_t seq)
{
	const struct cw_fr_op *ops;

	if (!place->group || place->dump->minor < HAS_SIZES_SINCE)
		return NULL;
	ops = &place->dump->ops[place->group->first_op];
	for (uint32_t i = place->group->n_ops; i-- > 0;) {
		if (ops[i].coll_seq != seq || ops[i].flags & CW_FR_P2P)
			continue;
		return ops[i].kind == CW_OP_ALL_TO_ALL && ops[i].flags & CW_FR_BOTH_SIZES &&
				       !(ops[i].flags & (CW_FR_COALESCED | CW_FR_NO_SHAPE))
			       ? &ops[i]
			       : NULL;
	}
	return NULL;
}

/*
 * Returns the one member whose size differs from the size of all others; -1 = there is no such
 * member.
 */
static int32_t odd_one_out(const struct cw_fr_op *const *ops, uint32_t n, bool is_taken,
			   uint64_t *ret_common)
{
	uint64_t first = size_of(ops[0], is_taken);
	int32_t odd = -1;

	/* If two of the first three sizes are equal, they are the common size. */
	if (n < 3)
		return -1;
	if (first != size_of(ops[1], is_taken) &&
	    size_of(ops[1], is_taken) == size_of(ops[2], is_taken))
		first = size_of(ops[1], is_taken);
	for (uint32_t i = 0; i < n; i++) {
		if (size_of(ops[i], is_taken) == first)
			continue;
		if (odd >= 0)
			return -1;
		odd = (int32_t)i;
	}
	*ret_common = first;
	return odd;
}

/*
 * Returns the odd member, if the totals sent and received would match with the common size in its
 * place. Otherwise returns -1.
 */
static int32_t who_would_mend_it(const struct cw_fr_op *const *ops, uint32_t n, bool is_taken,
				 uint64_t sent, uint64_t taken)
{
	uint64_t common = 0;
	int32_t odd = odd_one_out(ops, n, is_taken, &common);

	if (odd < 0)
		return -1;
	if (is_taken)
		return taken - ops[odd]->taken + common == sent ? odd : -1;
	return sent - ops[odd]->sent + common == taken ? odd : -1;
}

/*
 * Returns the only completed member, if at least two others still wait for data. Otherwise returns
 * -1.
 */
static int32_t who_left_others_short(const struct cw_fr_op *const *ops, uint32_t n)
{
	int32_t done = -1;

	for (uint32_t i = 0; i < n; i++) {
		if (ops[i]->state != CW_FR_COMPLETED)
			continue;
		if (done >= 0)
			return -1;
		done = (int32_t)i;
	}
	return n >= 3 ? done : -1;
}

static int32_t who_is_at_odds(const struct cw_fr_op *const *ops, uint32_t n, uint64_t sent,
			      uint64_t taken)
{
	int32_t by_sent = who_would_mend_it(ops, n, false, sent, taken);
	int32_t by_taken = who_would_mend_it(ops, n, true, sent, taken);

	if (by_sent >= 0 && by_taken >= 0 && by_sent != by_taken)
		return -1;
	if (by_sent >= 0 || by_taken >= 0)
		return by_sent >= 0 ? by_sent : by_taken;
	return sent < taken ? who_left_others_short(ops, n) : -1;
}

void fr_exchange_compare(struct fr_comm *comm, struct cw_arena *arena)
{
	uint64_t seq = comm->lowest_pending, sent = 0, taken = 0;
	const struct cw_fr_op **ops;

	comm->uneven_member = -1;
	if (!seq || comm->pending_kind != CW_OP_ALL_TO_ALL)
		return;
	ops = cw_or_exit(cw_arena_new_array(arena, const struct cw_fr_op *, comm->n_ranks));
	for (uint32_t i = 0; i < comm->n_ranks; i++) {
		ops[i] = exchange_of(&comm->places[i], seq);
		if (!ops[i] || __builtin_add_overflow(sent, ops[i]->sent, &sent) ||
		    __builtin_add_overflow(taken, ops[i]->taken, &taken))
			return;
	}
	if (sent == taken)
		return;
	comm->uneven_seq = seq;
	comm->uneven_member = who_is_at_odds(ops, comm->n_ranks, sent, taken);
}
