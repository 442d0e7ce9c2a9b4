/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/snapshot/snap_builder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/rankset.h"
#include "model/signature.h"
#include "record/record_layout.h"

#define WINDOW 8
#define QUIET_NS (20 * SB_S) /* a member that waits for nothing last moved this long ago */
#define KNOWS_ALL                                                                                  \
	(CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_REACHED | CW_KNOWN_COMPLETED |            \
	 CW_KNOWN_HASH | CW_KNOWN_P2P)

struct sb *sb_new(uint32_t n_ranks, uint32_t n_nodes)
{
	struct sb *b = calloc(1, sizeof(*b));

	cr_assert(b && n_ranks <= SB_MAX_RANKS);
	b->now_ns = SB_NOW;
	b->n_ranks = n_ranks;
	b->n_nodes = n_nodes;
	for (uint32_t i = 0; i < n_ranks; i++)
		b->ranks[i] = (struct cw_snap_rank){
			.rank = (int32_t)i,
			.node = i * n_nodes / n_ranks,
			.pid = 800 + (int32_t)i,
			.device = 0,
			.liveness = CW_LIVE_ALIVE,
			.flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING,
			.sampled_ns = SB_NOW,
			.host_activity_ns = SB_NOW,
		};
	return b;
}

void sb_clear_comms(struct sb *b)
{
	while (b->n_comms)
		free(b->comms[--b->n_comms]);
}

void sb_free(struct sb *b)
{
	sb_clear_comms(b);
	free(b);
}

struct sb_comm *sb_comm(struct sb *b, const char *name, uint32_t first, uint32_t n, uint32_t stride,
			uint64_t done)
{
	struct sb_comm *c = calloc(1, sizeof(*c));

	cr_assert(c && b->n_comms < SB_MAX_COMMS);
	b->comms[b->n_comms++] = c;
	c->name = name;
	c->id = 0xc0 + b->n_comms;
	c->nranks = n;
	c->usual = (struct cw_op){ .kind = CW_OP_ALL_REDUCE,
				   .dtype = CW_DTYPE_FP32,
				   .redop = CW_REDOP_SUM,
				   .root = CW_PEER_NONE,
				   .peer = CW_PEER_NONE,
				   .count = 1024,
				   .bytes = 4096 };
	for (uint32_t m = 0; m < n; m++)
		c->members[m] = (struct sb_member){ .rank = first + m * stride,
						    .state = CW_COMM_READY,
						    .known = KNOWS_ALL,
						    .entered = done,
						    .returned = done,
						    .reached = done,
						    .completed = done };
	return c;
}

void sb_waits(struct sb_comm *c, uint32_t member, int64_t age_ns)
{
	struct sb_member *m = &c->members[member];

	m->entered++;
	m->returned = m->reached = m->entered;
	m->age_ns = age_ns;
}

void sb_all_wait_but(struct sb_comm *c, uint32_t member, int64_t age_ns)
{
	for (uint32_t m = 0; m < c->nranks; m++)
		if (m != member)
			sb_waits(c, m, age_ns);
}

struct cw_op *sb_odd(struct sb_comm *c, uint32_t member, uint64_t seq)
{
	struct sb_member *m = &c->members[member];
	struct cw_op *op = &m->odd[m->n_odd++];

	cr_assert(m->n_odd <= SB_MAX_ODD);
	*op = c->usual;
	op->coll_seq = seq;
	return op;
}

struct cw_op *sb_call(struct sb_comm *c, uint32_t member, unsigned kind, int64_t age_ns)
{
	struct cw_op *op = &c->members[member].call;

	c->members[member].age_ns = age_ns;
	*op = (struct cw_op){ .kind = (uint8_t)kind,
			      .dtype = CW_DTYPE_NONE,
			      .redop = CW_REDOP_NONE,
			      .root = CW_PEER_NONE,
			      .peer = CW_PEER_NONE,
			      /*
			       * no number, like the agent, if the device's order has no place for
			       * it
			       */
			      .flags = cw_op_blocks_host(kind) ? CW_OPF_NO_COUNT : 0,
			      .op_index = c->members[member].entered + 1,
			      .enter_ns = SB_NOW - age_ns };
	return op;
}

/* Returns when the member entered its oldest pending op or, without one, completed its last op. */
static int64_t moved_ns(const struct sb_member *m)
{
	return SB_NOW - (m->age_ns ? m->age_ns : QUIET_NS);
}

void sb_leave_out(struct sb_comm *c, uint32_t member, uint64_t to, uint64_t entered, int64_t age_ns)
{
	struct sb_member *m = &c->members[member];

	m->untracked_to = to;
	m->entered = m->returned = entered;
	m->age_ns = age_ns;
}

struct cw_op sb_op(const struct sb_comm *c, uint32_t member, uint64_t seq)
{
	const struct sb_member *m = &c->members[member];
	struct cw_op op = c->usual;

	for (uint32_t i = 0; i < m->n_odd; i++)
		if (m->odd[i].coll_seq == seq)
			op = m->odd[i];
	op.coll_seq = seq;
	op.op_index = seq;
	op.enter_ns = moved_ns(m);
	if (seq > m->completed)
		op.enter_ns += (int64_t)(seq - m->completed - 1) * 1000;
	else
		op.enter_ns -=
			(int64_t)(m->completed + 1 - seq) * (c->every_ns ? c->every_ns : SB_S / 10);
	op.progress = CW_PROGRESS_UNKNOWN;
	if (m->known & CW_KNOWN_COMPLETED)
		op.progress = seq <= m->completed ? CW_PROGRESS_COMPLETED
			      : seq <= m->reached ? CW_PROGRESS_REACHED
						  : CW_PROGRESS_ENQUEUED;
	if (m->untracked_to && seq > m->completed) {
		bool is_untracked = seq <= m->untracked_to;

		op.progress = is_untracked ? CW_PROGRESS_UNKNOWN : CW_PROGRESS_ENQUEUED;
		op.flags |= is_untracked ? CW_OPF_UNTRACKED : 0;
	}
	if (seq <= m->returned) {
		op.flags |= CW_OPF_RETURNED;
		op.return_ns = op.enter_ns + 1000;
	}
	return op;
}

/*
 * Returns the rolling hash after `seq`, over the last ops only. That is enough to distinguish
 * histories.
 */
static uint64_t hash_at(const struct sb_comm *c, uint32_t member, uint64_t seq)
{
	uint64_t h = CW_HASH_INIT;

	for (uint64_t s = seq > WINDOW ? seq - WINDOW + 1 : 1; s <= seq; s++) {
		struct cw_op op = sb_op(c, member, s);

		h = cw_hash_commit(
			h, cw_signature(op.kind, op.dtype, op.redop, op.root, op.count, op.bytes));
	}
	return h;
}

static void add_member(const struct sb_comm *c, uint32_t m, uint32_t comm, struct cw_snapshot *snap)
{
	const struct sb_member *spec = &c->members[m];
	struct cw_op window[WINDOW], pending, last;
	bool on_device = spec->known & CW_KNOWN_COMPLETED;
	uint64_t oldest = (spec->untracked_to ? spec->untracked_to
			   : on_device        ? spec->completed
					      : spec->returned) +
			  1;
	struct cw_snap_member member = {
		.rank = spec->rank,
		.state = spec->state,
		.known = spec->known,
		.coll_entered = spec->entered,
		.coll_returned = spec->returned,
		.coll_reached = spec->reached,
		.coll_completed = spec->completed,
		.op_index = spec->entered,
		.hash_seq = spec->returned,
		.hash = hash_at(c, m, spec->returned),
		.progress_ns = moved_ns(spec),
		.interval_ns = spec->interval_ns,
		.p2p = spec->n_p2p ? (struct cw_p2p_peer *)spec->p2p : NULL,
		.n_p2p = spec->n_p2p,
		.sends = spec->sends,
		.recvs = spec->recvs,
		.last_result = spec->last_result,
	};

	if (spec->rank == CW_SNAP_NONE)
		return;
	if (spec->untracked_to) {
		member.known &= ~(unsigned)(CW_KNOWN_REACHED | CW_KNOWN_COMPLETED);
		member.coll_reached = member.coll_completed = 0;
	}
	if (spec->call.kind != CW_OP_NONE)
		pending = spec->call;
	else if (spec->entered >= oldest)
		pending = sb_op(c, m, oldest);
	if (spec->call.kind != CW_OP_NONE || spec->entered >= oldest)
		member.pending = &pending;
	if (spec->entered) {
		last = sb_op(c, m, spec->entered);
		member.last = &last;
	}
	if (spec->newest.kind != CW_OP_NONE) {
		last = spec->newest;
		member.last = &last;
		member.op_index = last.op_index;
	}
	if (spec->has_window) {
		uint64_t from = spec->entered > WINDOW ? spec->entered - WINDOW + 1 : 1;

		for (uint64_t s = from; s <= spec->entered; s++)
			window[member.n_window++] = sb_op(c, m, s);
		if (spec->call.kind != CW_OP_NONE && member.n_window < WINDOW)
			window[member.n_window++] = spec->call;
		member.window = window;
		member.window_lost = from - 1;
		member.window_ns = SB_NOW;
	}
	cr_assert_eq(cw_snapshot_set_member(snap, comm, m, &member), 0);
}

struct cw_snapshot *sb_snapshot(const struct sb *b)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	uint32_t index;

	cr_assert(snap);
	snap->now_ns = b->now_ns;
	snap->ranks_expected = b->n_ranks;
	cr_assert_eq(cw_snapshot_set_job(snap, "job", "RANK"), 0);
	for (uint32_t i = 0; i < b->n_nodes; i++) {
		char name[8] = "node-a";

		name[5] = (char)('a' + i % 26);
		cr_assert_eq(cw_snapshot_add_node(snap, name, &index), 0);
		snap->nodes[index].state = b->node_state[i];
	}
	for (uint32_t i = 0; i < b->n_ranks; i++)
		cr_assert_eq(cw_snapshot_add_rank(snap, &b->ranks[i], &index), 0);
	for (uint32_t i = 0; i < b->n_comms; i++) {
		struct cw_snap_comm comm = { .id = b->comms[i]->id,
					     .parent_id = b->comms[i]->parent_id,
					     .split_ordinal = b->comms[i]->split_ordinal,
					     .name = b->comms[i]->name,
					     .nranks = b->comms[i]->nranks };

		cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
		for (uint32_t m = 0; m < b->comms[i]->nranks; m++)
			add_member(b->comms[i], m, index, snap);
	}
	return snap;
}

struct cw_verdict sb_verdict(const struct sb *b, struct cw_snapshot **ret_snap)
{
	struct cw_verdict v;

	*ret_snap = sb_snapshot(b);
	cr_assert_eq(cw_verdict_compute(*ret_snap, &v), 0);
	return v;
}

static const char *format_set(const struct cw_snapshot *snap, const uint32_t *ranks, size_t n,
			      char *buf, size_t len)
{
	int32_t *labels = calloc(n + 1, sizeof(*labels));

	cr_assert(labels);
	for (size_t i = 0; i < n; i++)
		labels[i] = snap->ranks[ranks[i]].rank;
	(void)cw_rankset_format(labels, n, buf, len);
	free(labels);
	return buf;
}

const char *sb_culprits(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	static char buf[256];
	uint32_t *ranks = calloc((size_t)v->n_culprits + 1, sizeof(*ranks));

	cr_assert(ranks);
	for (uint32_t i = 0; i < v->n_culprits; i++)
		ranks[i] = v->culprits[i].rank;
	(void)format_set(snap, ranks, v->n_culprits, buf, sizeof(buf));
	free(ranks);
	return buf;
}

const char *sb_victims(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	static char buf[256];

	return format_set(snap, v->victims, v->n_victims, buf, sizeof(buf));
}
