/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/ruled_out.h"

#include <errno.h>

#include "analysis/align/position.h"
#include "analysis/wording/arg.h"

/* Appends an empty sentence to the list, which has room for it, and returns the sentence. */
static struct cw_clause *rule_out(struct diagnosis *diag)
{
	struct cw_clause *clause = &diag->v->ruled_out_said[diag->v->n_ruled_out++];

	*clause = clause_of(diag);
	return clause;
}

static bool knows_call(const struct cw_snap_member *m, uint64_t seq)
{
	if (m->pending && position_is_step(m->pending) && m->pending->coll_seq == seq)
		return true;
	if (m->last && position_is_step(m->last) && m->last->coll_seq == seq)
		return true;
	for (uint32_t i = 0; i < m->n_window; i++)
		if (position_is_step(&m->window[i]) && m->window[i].coll_seq == seq)
			return true;
	return false;
}

/* True if we know the member's call `seq`, or know that the member has not entered it. */
static bool is_compared(const struct cw_snap_member *m, uint64_t seq)
{
	return knows_call(m, seq) ||
	       ((m->known & CW_KNOWN_ENTERED) && m->rank != CW_SNAP_NONE && m->coll_entered < seq);
}

static int rule_out_mismatch(struct diagnosis *diag)
{
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->v->comm];
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, c->nranks);
	uint32_t n = 0;

	if (!ranks)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->nranks; m++) {
		if (!is_compared(&c->members[m], diag->v->coll_seq))
			return 0;
		if (knows_call(&c->members[m], diag->v->coll_seq))
			ranks[n++] = c->members[m].rank;
	}
	if (n < 2 || diag->s->alignments[diag->v->comm].seq ||
	    diag->s->alignments[diag->v->comm].hashes.differs)
		return 0;
	cw_say(rule_out(diag), no_mismatch, arg_ranks(diag, ranks, n), arg_count(diag->v->coll_seq),
	       arg_comm(diag, diag->v->comm));
	return 0;
}

/*
 * Rules out a setup that differs. If a call does not end and no rank can be blamed, users first ask
 * about the setup.
 */
static void rule_out_setup(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_snap_comm *c = &snap->comms[diag->v->comm];
	const struct cw_snap_rank *first = NULL;
	struct cw_clause trait = clause_of(diag);

	if (diag->main->setup || diag->v->n_culprits ||
	    (diag->v->verdict_class != CW_CLASS_IN_COLLECTIVE &&
	     diag->v->verdict_class != CW_CLASS_INIT_STUCK))
		return;
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_rank *r;

		if (c->members[m].rank == CW_SNAP_NONE)
			return;
		r = &snap->ranks[c->members[m].rank];
		first = first ? first : r;
		if (!r->nccl_version || r->nccl_version != first->nccl_version ||
		    r->env_hash != first->env_hash)
			return;
	}
	say_trait(diag, diag->v->comm, c->members[0].rank, CW_DETAIL_VERSION, &trait);
	if (diag->v->n_also > diag->v->n_known_hangs)
		cw_say(rule_out(diag), no_mixed_setup, arg_clause(&trait));
	else
		cw_say(rule_out(diag), no_mixed_versions, arg_clause(&trait));
}

/* True if the nodes have names. Recordings do not name their nodes. */
static bool has_named_nodes(const struct cw_snapshot *snap)
{
	return snap->n_nodes && snap->nodes[0].name && *snap->nodes[0].name;
}

static void rule_out_death(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].liveness == CW_LIVE_UNKNOWN ||
		    cw_liveness_is_dead(snap->ranks[i].liveness))
			return;
	cw_say(rule_out(diag), no_dead_process, arg_count(snap->n_ranks));
}

static void rule_out_cycle(struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->s->g.n_components; i++)
		if (diag->s->g.ranks_in[i] > 1)
			return;
	cw_say(rule_out(diag), no_deadlock);
}

static void rule_out_node(struct diagnosis *diag)
{
	uint32_t n = diag->s->snap->n_nodes;

	if (!has_named_nodes(diag->s->snap))
		return;
	if (n == 1)
		cw_say(rule_out(diag), no_lost_node_of_one);
	else if (n == 2)
		cw_say(rule_out(diag), no_lost_node_of_two);
	else
		cw_say(rule_out(diag), no_lost_node, arg_count(n));
}

/* We rule a cause out only if we looked for it and could have seen it. */
int ruled_out_list(struct diagnosis *diag)
{
	uint32_t spots = diag->v->blind_spots;
	bool sees_ranks = diag->s->snap->n_ranks && !(spots & 1u << CW_BLIND_RANK);
	int r = 0;

	diag->v->ruled_out_said = cw_arena_new_array(diag->arena, struct cw_clause, 5);
	if (!diag->v->ruled_out_said)
		return -ENOMEM;
	if (diag->v->verdict_class != CW_CLASS_MISMATCH && diag->v->coll_seq)
		r = rule_out_mismatch(diag);
	if (r < 0)
		return r;
	if (diag->v->comm != CW_SNAP_NONE)
		rule_out_setup(diag);
	if (sees_ranks)
		rule_out_death(diag);
	if (!spots)
		rule_out_cycle(diag);
	if (sees_ranks)
		rule_out_node(diag);
	return 0;
}
