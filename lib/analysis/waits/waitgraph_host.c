/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in which the host itself waits until all members have come: making a comm, split, finalize,
 * window registration. They have no coll_seq, so a member counts as having come when it is in the
 * same call now or has just left it. A member whose call came back with an error has not come, and
 * will not unless its program repeats the call.
 */
#include <errno.h>

#include "analysis/waits/waitgraph_builder.h"
#include "record/record_layout.h"

/*
 * Shrink and grow are called by some members only, abort and revoke by whoever likes; who else
 * should come is not known. A group's end waits in the ops of the group.
 */
static bool all_members_must_come(unsigned kind)
{
	return kind == CW_OP_COMM_SPLIT || kind == CW_OP_COMM_FINALIZE ||
	       kind == CW_OP_COMM_DESTROY || kind == CW_OP_WINDOW_REGISTER ||
	       kind == CW_OP_WINDOW_DEREGISTER || kind == CW_OP_DEV_COMM_CREATE;
}

static bool is_end_of_comm(unsigned kind)
{
	return kind == CW_OP_COMM_FINALIZE || kind == CW_OP_COMM_DESTROY;
}

static bool waits_on_host(const struct position *p, unsigned kind)
{
	return (p->flags & POS_WAITS) && !(p->flags & POS_INIT) && p->op && p->op->kind == kind;
}

static bool has_come(const struct builder *b, uint32_t m, unsigned kind)
{
	const struct cw_snap_member *member = &b->c->members[m];
	const struct position *p = &b->positions[m];

	if (p->flags & POS_DEAD)
		return is_end_of_comm(kind) && (p->flags & POS_LEFT);
	if (waits_on_host(p, kind))
		return true;
	if (member->last && member->last->kind == kind && !position_has_failed(member->last))
		return true;
	return is_end_of_comm(kind) &&
	       ((p->flags & POS_LEFT) || member->state == CW_COMM_FINALIZING);
}

static int list_missing(struct builder *b, struct gate *gate)
{
	uint32_t n = 0;

	gate->missing = cw_arena_new_array(b->arena, uint32_t, b->c->nranks);
	if (!gate->missing)
		return -ENOMEM;
	for (uint32_t m = 0; m < b->c->nranks; m++)
		if ((b->positions[m].flags & (POS_SEEN | POS_DEAD)) &&
		    !has_come(b, m, gate->op_kind))
			gate->missing[n++] = b->c->members[m].rank;
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
 * In a comm over the whole job whose visible members have the comm ranks that their labels say, a
 * member nobody has reported as is the rank of that label.
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

/* As many ranks of the job are not in the comm as members are not seen: it is they. */
static int list_all_others(struct builder *b, struct gate *gate)
{
	uint32_t expected = b->snap->ranks_expected, n = 0;
	bool *inside;

	/* A rank of which nothing is known at all may be the one. */
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

/* One that is seen, but not found by its label: `by_label` ends before it. */
static bool has_high_label(const struct cw_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].rank >= 0 && (uint32_t)snap->ranks[i].rank >= snap->n_ranks)
			return true;
	return false;
}

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
 * The member left this making and is in another one: its program repeats the initialisation, and
 * the others may do so, too. So the member is neither inside nor to blame.
 */
static int makes_another(struct builder *b, uint32_t rank, bool *ret)
{
	if (!b->is_making && find_makings(b) < 0)
		return -ENOMEM;
	*ret = b->is_making[rank];
	return 0;
}

static int list_left(struct builder *b, struct gate *gate, uint32_t member, uint32_t *n)
{
	uint32_t rank = b->c->members[member].rank;
	bool is_again;

	if (makes_another(b, rank, &is_again) < 0)
		return -ENOMEM;
	if (!is_again) {
		gate->missing[(*n)++] = rank;
		return 0;
	}
	gate->n_again++;
	gate->n_unseen++;
	return 0;
}

/* The members that have not come, as far as they can be named. */
static int list_absent(struct builder *b, struct gate *gate)
{
	bool by_label = is_numbered_like_job(b);
	int32_t *unseen = cw_arena_new_array(b->arena, int32_t, b->c->nranks);
	uint32_t n = 0, n_unseen = 0;

	gate->missing = cw_arena_new_array(b->arena, uint32_t, b->c->nranks);
	if (!gate->missing || !unseen)
		return -ENOMEM;
	gate->n_unseen = b->n_unseen;
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];

		if (p->flags & POS_UNMADE) {
			if (list_left(b, gate, m, &n) < 0)
				return -ENOMEM;
		} else if ((p->flags & POS_INIT) && (p->flags & (POS_DEAD | POS_STALE))) {
			gate->missing[n++] = b->c->members[m].rank;
		} else if (by_label && b->c->members[m].rank == CW_SNAP_NONE &&
			   m < b->snap->n_ranks && b->by_label[m] != CW_SNAP_NONE) {
			gate->missing[n++] = b->by_label[m];
			gate->n_unseen--;
		} else if (by_label && b->c->members[m].rank == CW_SNAP_NONE) {
			unseen[n_unseen++] = (int32_t)m;
		}
	}
	gate->n_missing = gate->n_missing_all = n;
	gate->unseen =
		n_unseen && n_unseen == gate->n_unseen && !has_high_label(b->snap) ? unseen : NULL;
	return gate->n_unseen ? list_all_others(b, gate) : 0;
}

/* In the making of a comm the members that are not there yet are mostly not visible either. */
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

	/* A rank of which nothing is known may come to any. */
	if (snap->n_ranks < 2 || snap->ranks_expected != snap->n_ranks)
		return 0;
	for (uint32_t i = 0; i < g->n_gates; i++) {
		const struct gate *gate = &g->gates[i];

		if (!gate->n_unseen && !gate->n_missing_all) /* all are inside: it may end */
			return 0;
		n += gate->kind == GATE_INIT;
	}
	for (uint32_t r = 0; n > 1 && r < snap->n_ranks; r++)
		if (!waitgraph_waits(g, r))
			return 0;
	return n > 1 ? n : 0;
}
