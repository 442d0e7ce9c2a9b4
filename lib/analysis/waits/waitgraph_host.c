/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in which the host itself waits until all members have come: the call that makes a comm,
 * split, finalize, window registration. These calls have no coll_seq. So a member has come if it is
 * in a call of the same kind now, or if its last call was of that kind. A member whose call
 * returned an error has not come. It will not come unless its program repeats the call.
 */
#include <errno.h>

#include "analysis/waits/waitgraph_builder.h"
#include "record/record_layout.h"

/*
 * True for calls that all members must make. Only some members call shrink and grow, and any member
 * may call abort and revoke. For these calls we do not know which members should come. The end of a
 * group waits in the ops of the group.
 */
static bool all_members_must_come(unsigned kind)
{
	return kind == CW_OP_COMM_SPLIT || kind == CW_OP_COMM_FINALIZE ||
	       kind == CW_OP_COMM_DESTROY || kind == CW_OP_WINDOW_REGISTER ||
	       kind == CW_OP_WINDOW_DEREGISTER || kind == CW_OP_DEV_COMM_CREATE;
}

static bool waits_on_host(const struct position *p, unsigned kind)
{
	return (p->flags & POS_WAITS) && !(p->flags & POS_INIT) && p->op && p->op->kind == kind;
}

/*
 * Lists the visible members that have not made the gate's call. If the call ends the comm, a member
 * that left the comm, or is finalizing it, has also come.
 */
static int list_missing(struct builder *b, struct gate *gate)
{
	bool is_end = gate->op_kind == CW_OP_COMM_FINALIZE || gate->op_kind == CW_OP_COMM_DESTROY;
	uint32_t n = 0;

	gate->missing = cw_arena_new_array(b->arena, uint32_t, b->c->nranks);
	if (!gate->missing)
		return -ENOMEM;
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct cw_snap_member *member = &b->c->members[m];
		const struct position *p = &b->positions[m];
		bool has_come = is_end && (p->flags & POS_LEFT);

		if (!(p->flags & (POS_SEEN | POS_DEAD)))
			continue;
		if (!has_come && !(p->flags & POS_DEAD))
			has_come = waits_on_host(p, gate->op_kind) ||
				   (member->last && member->last->kind == gate->op_kind &&
				    !position_has_failed(member->last)) ||
				   (is_end && member->state == CW_COMM_FINALIZING);
		if (!has_come)
			gate->missing[n++] = member->rank;
	}
	gate->n_missing = gate->n_missing_all = n;
	gate->n_unseen = b->n_unseen;
	return 0;
}

static int add_calls(struct builder *b)
{
	uint32_t gate_of[CW_OP__MAX];

	for (unsigned k = 0; k < CW_OP__MAX; k++)
		gate_of[k] = CW_SNAP_NONE;
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];
		struct gate *gate;
		unsigned kind;

		if (!p->op || p->op->kind >= CW_OP__MAX || !cw_op_blocks_host(p->op->kind) ||
		    !waits_on_host(p, p->op->kind))
			continue;
		kind = p->op->kind;
		if (gate_of[kind] == CW_SNAP_NONE) {
			gate = builder_add_gate(b, GATE_HOST, 0, kind);
			if (!gate || (all_members_must_come(kind) && list_missing(b, gate) < 0))
				return -ENOMEM;
			gate_of[kind] = b->g->n_gates - 1;
		}
		builder_note_waiter(b, &b->g->gates[gate_of[kind]], m);
	}
	return 0;
}

/*
 * True if the comm spans the whole job and the comm rank of each visible member is its label. A
 * member that no node reports is then the rank with that label.
 */
static bool is_numbered_like_job(const struct builder *b)
{
	uint32_t expected = b->snap->ranks_expected ? b->snap->ranks_expected : b->snap->n_ranks;

	if (b->c->nranks != expected)
		return false;
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		uint32_t rank = b->c->members[m].rank;

		if (rank < b->snap->n_ranks && b->snap->ranks[rank].rank != (int32_t)m)
			return false;
	}
	return true;
}

/*
 * Adds to the missing ranks all ranks of the job that are not in the comm, if their number equals
 * the number of invisible members. These ranks must then be the invisible members.
 */
static int list_all_others(struct builder *b, struct gate *gate)
{
	uint32_t expected = b->snap->ranks_expected, n = 0;
	bool *inside;

	/* A rank that we have not seen at all may be a member. */
	if (expected && expected != b->snap->n_ranks)
		return 0;
	inside = cw_arena_new_array(b->arena, bool, b->snap->n_ranks);
	if (!inside)
		return -ENOMEM;
	for (uint32_t m = 0; m < b->c->nranks; m++)
		if (b->c->members[m].rank < b->snap->n_ranks)
			inside[b->c->members[m].rank] = true;
	for (uint32_t i = 0; i < b->snap->n_ranks; i++)
		n += !inside[i];
	if (n != gate->n_unseen || gate->n_missing + n > b->c->nranks)
		return 0;
	for (uint32_t i = 0; i < b->snap->n_ranks; i++)
		if (!inside[i])
			gate->missing[gate->n_missing++] = i;
	gate->n_missing_all = gate->n_missing;
	gate->n_unseen = 0;
	return 0;
}

/* Notes the ranks that are making some comm now. */
static int find_makings(struct builder *b)
{
	const struct cw_snapshot *snap = b->snap;

	b->is_making = cw_arena_new_array(b->arena, bool, snap->n_ranks);
	if (!b->is_making)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank < snap->n_ranks && member->state == CW_COMM_INIT &&
			    !cw_liveness_is_dead(snap->ranks[member->rank].liveness))
				b->is_making[member->rank] = true;
		}
	return 0;
}

/*
 * Lists the members that have not entered the call that makes the comm, if we know which they are.
 */
static int list_absent(struct builder *b, struct gate *gate)
{
	bool by_label = is_numbered_like_job(b);
	int32_t *unseen = cw_arena_new_array(b->arena, int32_t, b->c->nranks);
	uint32_t n = 0, n_unseen = 0;
	bool has_high_label = false;

	gate->missing = cw_arena_new_array(b->arena, uint32_t, b->c->nranks);
	if (!gate->missing || !unseen)
		return -ENOMEM;
	gate->n_unseen = b->n_unseen;
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];
		uint32_t rank = b->c->members[m].rank;

		if (p->flags & POS_UNMADE) {
			/*
			 * The member left this call. If it makes another comm now, its program
			 * repeats the initialisation, and the other members may do so too. Then the
			 * member is neither inside the call nor to blame.
			 */
			if (!b->is_making && find_makings(b) < 0)
				return -ENOMEM;
			if (!b->is_making[rank]) {
				gate->missing[n++] = rank;
				continue;
			}
			gate->n_again++;
			gate->n_unseen++;
		} else if ((p->flags & POS_INIT) && (p->flags & (POS_DEAD | POS_STALE))) {
			gate->missing[n++] = rank;
		} else if (by_label && rank == CW_SNAP_NONE && m < b->snap->n_ranks &&
			   b->by_label[m] != CW_SNAP_NONE) {
			gate->missing[n++] = b->by_label[m];
			gate->n_unseen--;
		} else if (by_label && rank == CW_SNAP_NONE) {
			unseen[n_unseen++] = (int32_t)m;
		}
	}
	gate->n_missing = gate->n_missing_all = n;
	/*
	 * `by_label` has only labels below n_ranks. A visible member with a higher label therefore
	 * looks as if no leader saw it.
	 */
	for (uint32_t i = 0; i < b->snap->n_ranks && n_unseen && !has_high_label; i++)
		has_high_label = b->snap->ranks[i].rank >= 0 &&
				 (uint32_t)b->snap->ranks[i].rank >= b->snap->n_ranks;
	if (n_unseen && n_unseen == gate->n_unseen && !has_high_label)
		gate->unseen = unseen;
	return gate->n_unseen ? list_all_others(b, gate) : 0;
}

/*
 * Adds the gate of the call that makes the comm. Most members that have not come are not visible.
 */
static int add_init(struct builder *b)
{
	struct gate *gate = NULL;

	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];

		if (!(p->flags & POS_INIT) || !(p->flags & POS_WAITS))
			continue;
		if (!gate) {
			gate = builder_add_gate(b, GATE_INIT, 0, CW_OP_COMM_INIT);
			if (!gate)
				return -ENOMEM;
		}
		builder_note_waiter(b, gate, m);
	}
	return gate ? list_absent(b, gate) : 0;
}

int waitgraph_add_host(struct builder *b)
{
	int r = add_calls(b);

	return r < 0 ? r : add_init(b);
}

uint32_t waitgraph_crossed_makings(const struct cw_snapshot *snap, const struct waitgraph *g)
{
	uint32_t n = 0;

	/* A rank that we have not seen at all may come to any gate. */
	if (snap->n_ranks < 2 || snap->ranks_expected != snap->n_ranks)
		return 0;
	for (uint32_t i = 0; i < g->n_gates; i++) {
		const struct gate *gate = &g->gates[i];

		/* All members are inside, so the call may end. */
		if (!gate->n_unseen && !gate->n_missing_all)
			return 0;
		n += gate->kind == GATE_INIT;
	}
	for (uint32_t r = 0; n > 1 && r < snap->n_ranks; r++)
		if (!waitgraph_waits(g, r))
			return 0;
	return n > 1 ? n : 0;
}
