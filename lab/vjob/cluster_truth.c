/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The true state of the cluster, independent of all reports. We check reports against it.
 * tests/suite/claims reads the fields.
 */
#include <jansson.h>

#include "lab/vjob/cluster_state.h"

/*
 * We list the last calls per member, up to this many. Fewer calls are made between the reported
 * state and now.
 */
#define OPS_KEPT 96u

int64_t cluster_moved_ns(const struct cluster *c, uint32_t rank)
{
	const struct rank *r = &c->ranks[rank];
	int64_t ns = 0;

	for (uint32_t f = 0; f < c->s->n_families && !r->ended_ns; f++)
		if (r->members[f] && r->members[f]->moved_ns > ns)
			ns = r->members[f]->moved_ns;
	return ns;
}

int64_t cluster_hit_ns(const struct cluster *c, uint32_t rank)
{
	return c->ranks[rank].hit_ns;
}

int64_t cluster_waiting_since_ns(const struct cluster *c)
{
	int64_t since_ns = SUITE_FOREVER;

	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		for (uint32_t f = 0; f < c->s->n_families && !c->ranks[i].ended_ns; f++) {
			struct member *m = c->ranks[i].members[f];

			if (m && m->op_index && m->first_open <= m->op_index &&
			    member_op(m, m->first_open)->enter_ns < since_ns)
				since_ns = member_op(m, m->first_open)->enter_ns;
		}
	}
	return since_ns;
}

int64_t cluster_stands_since_ns(const struct cluster *c, uint32_t rank, int64_t *ret_until_ns)
{
	const struct rank *r = &c->ranks[rank];
	bool stands = false;
	int64_t ns = 0;

	*ret_until_ns = r->ended_ns ? r->ended_ns : c->now_ns;
	for (uint32_t f = 0; f < c->s->n_families; f++) {
		const struct member *m = r->members[f];

		if (!m)
			continue;
		stands |= m->op_index && m->first_open <= m->op_index;
		ns = m->moved_ns > ns ? m->moved_ns : ns;
	}
	return stands ? ns : 0;
}

void cluster_groups(const struct cluster *c, uint32_t *ret)
{
	bool changed = true;

	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		ret[i] = i;
	while (changed) {
		changed = false;
		for (uint32_t k = 0; k < c->n_comms; k++) {
			const struct comm *comm = &c->comms[k];
			uint32_t least = UINT32_MAX;

			for (uint32_t i = 0; i < comm->nranks; i++)
				if (ret[comm->members[i].rank->index] < least)
					least = ret[comm->members[i].rank->index];
			for (uint32_t i = 0; i < comm->nranks; i++) {
				uint32_t *of = &ret[comm->members[i].rank->index];

				changed |= *of != least;
				*of = least;
			}
		}
	}
}

static double seconds_since(const struct cluster *c, int64_t then_ns)
{
	return (double)(c->now_ns - then_ns) / (double)S;
}

static const char *life_of(const struct rank *r)
{
	switch (r->liveness) {
	case CW_LIVE_EXITED:
		return "exited";
	case CW_LIVE_KILLED:
		return "killed";
	case CW_LIVE_STOPPED:
		return "stopped";
	case CW_LIVE_TRACED:
		return "traced";
	default:
		return r->flags & CW_RANKF_FROZEN ? "frozen" : "alive";
	}
}

static const char *host_of(const struct rank *r)
{
	static const char *const names[] = {
		"ready", "busy", "sync", "launch", "barrier", "ended"
	};

	return names[r->host];
}

/* True if a kernel at the head of a stream never ends. */
static bool has_stuck_stream(const struct rank *r)
{
	for (uint32_t i = 0; i < STREAMS; i++)
		if (r->streams[i] && !r->streams[i]->m && r->streams[i]->ns == SUITE_FOREVER)
			return true;
	return false;
}

/* Returns when a debugger, a stop or a fault's wait last released the rank; 0 = never. */
static int64_t let_go_ns(const struct rank *r)
{
	return r->wait_end_ns <= r->c->now_ns && r->wait_end_ns > r->thawed_ns ? r->wait_end_ns
									       : r->thawed_ns;
}

static json_t *rank_doc(const struct rank *r)
{
	const struct cluster *c = r->c;
	const struct node *n = &c->nodes[r->node];
	const struct comm *inside =
		r->host == HOST_BARRIER && r->barrier_member ? r->barrier_member->comm : NULL;

	return json_pack(
		"{s:i, s:s, s:i, s:s, s:i, s:i, s:b, s:f, s:b, s:s, s:s, s:i, s:i, s:s, s:f, s:b, "
		"s:i, s:I, s:f}",
		"rank", (int)r->index, "node", n->name, "pid", (int)process_pid(r), "life",
		life_of(r), "code", (int)r->exit_code, "signal", (int)r->term_signal, "oom",
		r->flags & CW_RANKF_OOM_KILLED ? 1 : 0, "ended_ago",
		r->ended_ns ? seconds_since(c, r->ended_ns) : -1.0, "blind", r->is_blind ? 1 : 0,
		"host", host_of(r), "by", r->busy_by ? r->busy_by : "", "wait", (int)r->wait,
		"inside_comm", inside ? (int)(inside - c->comms) : -1, "inside_kind",
		inside ? cw_op_kind_name(r->barrier_call.kind) : "", "active_ago",
		seconds_since(c, r->active_ns), "stuck", has_stuck_stream(r) ? 1 : 0, "version",
		(int)trait_version(c->s, r->index), "environment",
		(json_int_t)trait_environment(c->s, r->index), "let_go_ago",
		let_go_ns(r) ? seconds_since(c, let_go_ns(r)) : -1.0);
}

/*
 * Returns an op as an array, which is shorter than an object. A failed call has no number, because
 * NCCL did not count it.
 */
static json_t *op_doc(const struct cluster *c, const struct cw_op *op)
{
	bool has_number = !(op->flags & CW_OPF_DROPPED);

	return json_pack("[I, s, s, s, i, i, I, I, I, s, b, b, f, f, i]", (json_int_t)op->op_index,
			 cw_op_kind_name(op->kind), cw_dtype_name(op->dtype),
			 cw_redop_name(op->redop), (int)op->root, (int)op->peer,
			 (json_int_t)op->count, has_number ? (json_int_t)op->coll_seq : 0,
			 has_number ? (json_int_t)op->p2p_seq : 0,
			 op->progress == CW_PROGRESS_COMPLETED ? "completed"
			 : op->progress == CW_PROGRESS_REACHED ? "reached"
							       : "enqueued",
			 op->flags & CW_OPF_RETURNED ? 1 : 0, op->flags & CW_OPF_NO_COUNT ? 1 : 0,
			 seconds_since(c, op->enter_ns),
			 op->flags & CW_OPF_RETURNED ? seconds_since(c, op->return_ns) : -1.0,
			 (int)op->result);
}

static json_t *ops_doc(const struct member *m)
{
	uint64_t n = m->op_index < OPS_KEPT ? m->op_index : OPS_KEPT;
	json_t *ops = json_array();

	for (uint64_t i = m->op_index - n + 1; ops && n && i <= m->op_index; i++)
		(void)json_array_append_new(ops,
					    op_doc(m->rank->c, member_op((struct member *)m, i)));
	return ops;
}

static const char *state_of(const struct member *m)
{
	switch (m->state) {
	case CW_COMM_FREE:
		return "free";
	case CW_COMM_INIT:
		return "init";
	case CW_COMM_READY:
		return "ready";
	case CW_COMM_FINALIZING:
		return "finalizing";
	case CW_COMM_FAILED:
		return "failed";
	default:
		return "over";
	}
}

/* Returns the number of messages per peer, each as [peer, sends, receives]. */
static json_t *messages_doc(const struct member *m)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && m->peers && i < m->comm->nranks; i++)
		if (m->peers[i].sends || m->peers[i].recvs)
			(void)json_array_append_new(
				list, json_pack("[i, I, I]", (int)m->comm->members[i].rank->index,
						(json_int_t)m->peers[i].sends,
						(json_int_t)m->peers[i].recvs));
	return list;
}

static json_t *member_doc(const struct member *m)
{
	return json_pack("{s:i, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "rank",
			 (int)m->rank->index, "state", state_of(m), "told", (int)trait_size(m),
			 "entered", (json_int_t)m->entered, "returned", (json_int_t)m->returned,
			 "reached", (json_int_t)m->reached, "completed", (json_int_t)m->completed,
			 "calls", (json_int_t)m->op_index, "first_open", (json_int_t)m->first_open,
			 "wedged", m->in_flight && m->in_flight->is_wedged ? 1 : 0, "ops",
			 ops_doc(m), "messages", messages_doc(m));
}

static json_t *comm_doc(const struct comm *comm)
{
	json_t *members = json_array();

	for (uint32_t i = 0; members && i < comm->nranks; i++)
		(void)json_array_append_new(members, member_doc(&comm->members[i]));
	return json_pack("{s:s, s:i, s:o}", "name", comm->name, "family", (int)comm->family,
			 "members", members);
}

json_t *cluster_truth(const struct cluster *c)
{
	json_t *ranks = json_array(), *comms = json_array(), *nodes = json_array();

	for (uint32_t i = 0; ranks && i < c->s->n_ranks; i++)
		(void)json_array_append_new(ranks, rank_doc(&c->ranks[i]));
	for (uint32_t i = 0; comms && i < c->n_comms; i++)
		(void)json_array_append_new(comms, comm_doc(&c->comms[i]));
	for (uint32_t i = 0; nodes && i < c->n_nodes; i++)
		(void)json_array_append_new(
			nodes,
			json_pack("{s:s, s:b}", "name", c->nodes[i].name, "quiet",
				  node_is_quiet(c, &c->nodes[i]) || c->daemons_back_ns ? 1 : 0));
	return json_pack("{s:o, s:o, s:o}", "nodes", nodes, "ranks", ranks, "comms", comms);
}
