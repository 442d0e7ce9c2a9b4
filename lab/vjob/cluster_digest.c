/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the reports of a node's daemon about its ranks, in the form of messages. They contain ages
 * relative to the report instead of times.
 */
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"
#include "model/facts.h"
#include "proto/op_range.h"

uint32_t cluster_n_nodes(const struct cluster *c)
{
	return c->n_nodes;
}

int64_t cluster_wall_ahead_ns(const struct cluster *c)
{
	return c->wall_offset_ns;
}

enum cluster_daemon cluster_daemon(const struct cluster *c, uint32_t node)
{
	const struct node *n = &c->nodes[node];

	if (c->daemons_back_ns)
		return c->are_daemons_new ? CLUSTER_DAEMON_KILLED : CLUSTER_DAEMON_HELD;
	if (!node_is_quiet(c, n))
		return CLUSTER_DAEMON_RUNS;
	return n->daemon;
}

static uint32_t first_rank(const struct cluster *c, uint32_t node)
{
	return node * c->s->per_node;
}

static uint32_t end_rank(const struct cluster *c, uint32_t node)
{
	uint32_t end = (node + 1) * c->s->per_node;

	return end < c->s->n_ranks ? end : c->s->n_ranks;
}

uint32_t cluster_n_ended(const struct cluster *c, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = first_rank(c, node); i < end_rank(c, node); i++)
		n += c->ranks[i].ended_ns != 0;
	return n;
}

/* ---- ages ---- */

static int64_t age_ns(const struct cluster *c, int64_t then_ns)
{
	return then_ns < c->now_ns ? c->now_ns - then_ns : 0;
}

static struct cw_msg_op ages_of_op(const struct cluster *c, const struct cw_op *op)
{
	return (struct cw_msg_op){ .op_facts = op->op_facts,
				   .enter_age_ns = age_ns(c, op->enter_ns),
				   .return_age_ns = op->flags & CW_OPF_RETURNED
							    ? age_ns(c, op->return_ns)
							    : 0 };
}

static const struct cw_msg_op *make_op(const struct cluster *c, struct cw_arena *arena,
				       const struct cw_op *op)
{
	struct cw_msg_op ages = ages_of_op(c, op);

	return cw_or_exit(cw_arena_memdup(arena, &ages, 1, sizeof(ages)));
}

/* ---- a member ---- */

static void add_checkpoints(const struct cw_snap_member *v, struct cw_arena *arena,
			    struct cw_msg_member *out)
{
	out->checkpoints = cw_or_exit(cw_arena_memdup(arena, v->checkpoints, CW_SNAP_CHECKPOINTS,
						      sizeof(*v->checkpoints)));
	while (out->n_checkpoints < CW_SNAP_CHECKPOINTS &&
	       out->checkpoints[out->n_checkpoints].coll_seq)
		out->n_checkpoints++;
}

static void add_p2p(const struct cw_snap_member *v, struct cw_arena *arena,
		    struct cw_msg_member *out)
{
	uint32_t n = v->n_p2p < CW_MSG_MAX_P2P ? v->n_p2p : CW_MSG_MAX_P2P;

	if (!n)
		return;
	out->p2p = cw_or_exit(cw_arena_memdup(arena, v->p2p, n, sizeof(*v->p2p)));
	out->n_p2p = n;
}

static void make_member(const struct cluster *c, const struct member *m, struct cw_arena *arena,
			struct cw_msg_member *out)
{
	const struct cw_snap_member *v = &m->view.m;

	*out = (struct cw_msg_member){
		.member_facts = v->member_facts,
		.comm_id = m->comm->id,
		.nccl_hash = m->comm->id >> 1,
		.name = m->comm->name,
		.comm_rank = (int32_t)m->comm_rank,
		.device = (int32_t)(m->rank->index % c->s->per_node),
		.progress_age_ns = age_ns(c, v->progress_ns),
		.interval_ns = (uint64_t)v->interval_ns,
		.last_error = "",
	};
	if (v->pending)
		out->pending = make_op(c, arena, v->pending);
	if (v->last)
		out->last = make_op(c, arena, v->last);
	add_checkpoints(v, arena, out);
	add_p2p(v, arena, out);
}

/* ---- a rank ---- */

static void make_rank(const struct cluster *c, const struct rank *r, struct cw_arena *arena,
		      struct cw_msg_rank *out)
{
	const struct view_rank *v = &r->view;
	bool dead = cw_liveness_is_dead(v->liveness);

	*out = (struct cw_msg_rank){
		.rank = (int32_t)r->index,
		.world_size = (int32_t)c->s->n_ranks,
		.local_rank = (int32_t)(r->index % c->s->per_node),
		.rank_source = "RANK",
		.pid = process_pid(r),
		.start_ticks = (uint64_t)(c->start_ns / MS) + 7,
		.started_age_ns = (uint64_t)age_ns(c, c->start_ns),
		.device = (int32_t)(r->index % c->s->per_node),
		.uid = CLUSTER_UID,
		.liveness = v->liveness,
		.exit_code = dead ? (int32_t)r->exit_code : 0,
		.term_signal = dead ? (int32_t)r->term_signal : 0,
		.end_by = dead ? view_end_by(r) : 0,
		.end_sender =
			dead && view_end_by(r) == CW_END_BY_PROCESS ? CLUSTER_LAUNCHER_PID : 0,
		.flags = v->flags | (dead && view_is_shutdown(c, r) ? CW_RANKF_SHUTDOWN : 0),
		.ended_age_ns = dead ? age_ns(c, r->ended_ns) : 0,
		.host_activity_age_ns = age_ns(c, v->host_activity_ns),
		.sampled_age_ns = dead ? 0 : age_ns(c, v->sampled_ns),
		.nccl_version = trait_version(c->s, r->index),
		.env_hash = trait_environment(c->s, r->index),
		.command = "train.py",
		.host_activity_by = v->host_activity_by ? v->host_activity_by : "",
		.host_wait = v->host_wait,
		.job_timeout_ns = (uint64_t)c->s->job_timeout_ns,
		.cause_command = "",
		.cause_group = "",
		.nonfinite_input = "",
		.members = cw_or_exit(
			cw_arena_new_array(arena, struct cw_msg_member, c->s->n_families)),
	};
	if (v->host_call.kind != CW_OP_NONE) {
		out->host_call = make_op(c, arena, &v->host_call);
		out->host_call_comm_id = v->host_call_comm_id;
	}
	for (uint32_t f = 0; f < c->s->n_families; f++) {
		const struct member *m = r->members[f];

		if (!m || m->view.m.state == CW_COMM_FREE)
			continue;
		make_member(c, m, arena, &out->members[out->n_members++]);
	}
}

int cluster_digest_ranks(struct cluster *c, uint32_t node, struct cw_arena *arena,
			 struct cw_msg_rank **ret, uint32_t *ret_n)
{
	uint32_t first = first_rank(c, node), end = end_rank(c, node), n = 0;
	struct cw_msg_rank *ranks;

	if (c->digests) {
		for (uint32_t i = first; i < end; i++)
			view_sample(&c->ranks[i]);
		return record_digest_ranks(c, node, ret, ret_n);
	}
	ranks = cw_or_exit(cw_arena_new_array(arena, struct cw_msg_rank, end - first));
	for (uint32_t i = first; i < end; i++) {
		struct rank *r = &c->ranks[i];

		view_sample(r);
		if (!r->view.is_seen || r->is_blind)
			continue;
		make_rank(c, r, arena, &ranks[n++]);
	}
	*ret = ranks;
	*ret_n = n;
	return c->error;
}

/* ---- windows ---- */

static bool is_wanted(const struct cw_msg_window_request *q, const struct member *m)
{
	for (uint32_t i = 0; i < q->n_comm_ids; i++)
		if (m && m->ring && q->comm_ids[i] == m->comm->id)
			return true;
	return false;
}

static void read_window(const struct cluster *c, struct member *m,
			const struct cw_msg_window_request *q, uint32_t max, struct cw_arena *arena,
			struct cw_msg_window *out)
{
	uint64_t most = q->to_seq || max > RING ? RING : max;
	uint64_t n = m->op_index < most ? m->op_index : most;
	struct cw_msg_op *ops = cw_or_exit(cw_arena_array_raw(arena, n, sizeof(*ops)));

	for (uint64_t i = 0; i < n; i++) {
		struct cw_op op = view_op(m, m->op_index - n + 1 + i);

		ops[i] = ages_of_op(c, &op);
	}
	*out = (struct cw_msg_window){ .comm_id = m->comm->id,
				       .pid = process_pid(m->rank),
				       .start_ticks = (uint64_t)(c->start_ns / MS) + 7,
				       .comm_rank = (int32_t)m->comm_rank,
				       .ops = ops,
				       .lost = m->op_index - n };
	if (q->to_seq) {
		n = cw_op_range_select(ops, n, q->from_seq, q->to_seq, max);
		out->lost = n ? ops[0].op_index - 1 : m->op_index;
	}
	out->n_ops = (uint32_t)n;
}

int cluster_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		    struct cw_arena *arena, struct cw_msg_window **ret, uint32_t *ret_n)
{
	uint32_t first = first_rank(c, node), end = end_rank(c, node), n = 0, most, k = 0;
	struct cw_msg_window *windows;

	if (c->digests)
		return record_windows(c, node, q, ret, ret_n);
	for (uint32_t i = first; i < end; i++)
		for (uint32_t f = 0; f < c->s->n_families && !c->ranks[i].is_blind; f++)
			n += is_wanted(q, c->ranks[i].members[f]);
	most = n && CW_MSG_MAX_REPLY_OPS / n < q->max_ops ? CW_MSG_MAX_REPLY_OPS / n : q->max_ops;
	windows = cw_or_exit(cw_arena_new_array(arena, struct cw_msg_window, n));
	for (uint32_t i = first; i < end; i++)
		for (uint32_t f = 0; f < c->s->n_families && !c->ranks[i].is_blind; f++) {
			struct member *m = c->ranks[i].members[f];

			if (is_wanted(q, m))
				read_window(c, m, q, most ? most : 1, arena, &windows[k++]);
		}
	*ret = windows;
	*ret_n = n;
	return 0;
}
