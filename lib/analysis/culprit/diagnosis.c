/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a diagnosis run in this order, because each step needs the one before:
 *
 *  1. the victims: ranks that wait for the finding, directly or indirectly ("upstream" of it);
 *  2. related: other findings that the victims wait for;
 *  3. the culprits;
 *  4. the victims again, without the culprits;
 *  5. alternatives: other possible answers;
 *  6. the sides of the call;
 *  7. a chain of waits as an example.
 *
 * Each way to find culprits is one function: blame_*.
 */
#include "analysis/culprit/diagnosis.h"

#include <errno.h>
#include <string.h>

#include "analysis/align/position.h"
#include "analysis/culprit/alternatives.h"
#include "analysis/culprit/blocked_collective.h"
#include "analysis/culprit/call_order.h"
#include "analysis/culprit/chain.h"
#include "analysis/culprit/consequence.h"
#include "analysis/culprit/same_process.h"
#include "analysis/waits/hitting_sets.h"

static bool is_rank_node(const struct diagnosis *diag, uint32_t node)
{
	return node < diag->s->g.n_ranks;
}

/* ---- victims: all ranks upstream ---- */

/*
 * Lists the nodes of the graph at which the finding's trouble is. The victims are upstream of these
 * nodes.
 */
static int starting_nodes(const struct diagnosis *diag, uint32_t **ret, uint32_t *ret_n)
{
	const struct waitgraph *g = &diag->s->g;
	const struct finding *f = diag->main;
	uint32_t n = 0, total = g->n_ranks + g->n_gates;
	uint32_t *nodes = cw_arena_new_array(&diag->s->arena, uint32_t, total);

	if (!nodes)
		return -ENOMEM;
	if (f->messages) {
		; /* no rank waits for a message */
	} else if (f->verdict_class == CW_CLASS_MISMATCH && !f->setup) {
		const struct alignment *al = &diag->s->alignments[f->comm];

		for (uint32_t i = 0; f->gate != CW_SNAP_NONE && !f->ended && i < g->n_gates; i++)
			if (g->gates[i].comm == f->comm && g->gates[i].seq >= al->from_seq &&
			    (g->gates[i].kind == GATE_COLLECTIVE || g->gates[i].kind == GATE_ROOT))
				nodes[n++] = waitgraph_gate_node(g, i);
		for (uint32_t r = 0; f->ended && r < g->n_ranks; r++)
			if (consequence_is_of(diag->s, f, r))
				nodes[n++] = r;
	} else if (f->verdict_class == CW_CLASS_DEADLOCK) {
		for (uint32_t i = 0; i < total; i++)
			if (g->component[i] == g->component[f->node])
				nodes[n++] = i;
	} else if (diag->v->n_culprits && is_rank_node(diag, f->node)) {
		for (uint32_t i = 0; i < diag->v->n_culprits; i++)
			nodes[n++] = diag->v->culprits[i].rank;
	} else {
		nodes[n++] = f->node;
		for (uint32_t i = 1; i < diag->n_unfinished; i++)
			nodes[n++] = diag->unfinished[i]->node;
	}
	*ret = nodes;
	*ret_n = n;
	return 0;
}

/* Lists the ranks that wait upstream and are no culprits. search_upstream() must have run. */
static int list_victims(struct diagnosis *diag)
{
	const struct upstream *up = &diag->s->up;
	struct cw_verdict *v = diag->v;

	v->victims = cw_arena_new_array(diag->arena, uint32_t, up->n_order);
	if (!v->victims)
		return -ENOMEM;
	v->n_victims = 0;
	for (uint32_t i = 0; i < up->n_order; i++) {
		uint32_t node = up->order[i];

		if (is_rank_node(diag, node) && !diag->is_culprit[node] &&
		    waitgraph_waits(&diag->s->g, node))
			v->victims[v->n_victims++] = node;
	}
	align_sort_ranks(diag->s->snap, v->victims, v->n_victims);
	return 0;
}

static int search_upstream(struct diagnosis *diag)
{
	uint32_t *nodes, n;
	int r = starting_nodes(diag, &nodes, &n);

	if (r < 0)
		return r;
	upstream_search(&diag->s->g, nodes, n, &diag->s->up);
	return list_victims(diag);
}

/* ---- culprits ---- */

/*
 * Makes these ranks the culprits, each once, in the order of their labels. Sorts `ranks` in place.
 */
static int set_culprits(struct diagnosis *diag, uint32_t *ranks, uint32_t n)
{
	struct cw_verdict *v = diag->v;

	v->culprits = cw_arena_new_array(diag->arena, struct cw_culprit, n);
	if (!v->culprits)
		return -ENOMEM;
	align_sort_ranks(diag->s->snap, ranks, n);
	v->n_culprits = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!i || ranks[i] != ranks[i - 1])
			v->culprits[v->n_culprits++].rank = ranks[i];
	for (uint32_t i = 0; i < v->n_culprits; i++)
		diag->is_culprit[v->culprits[i].rank] = true;
	return 0;
}

uint32_t diagnosis_list_minority(const struct alignment *al, uint32_t *ranks)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < al->n_sides; i++) {
		/* We do not blame members that have not entered the call yet. */
		if ((al->knows_call && !al->sides[i].has_op) || i == al->majority)
			continue;
		memcpy(&ranks[n], al->sides[i].ranks, al->sides[i].n_ranks * sizeof(*ranks));
		n += al->sides[i].n_ranks;
	}
	return n;
}

static int blame_minority(struct diagnosis *diag)
{
	const struct alignment *al = engine_context_sides(diag->s, diag->main);
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, al->n_compared);

	return ranks ? set_culprits(diag, ranks, diagnosis_list_minority(al, ranks)) : -ENOMEM;
}

/*
 * True if the cycle has only collectives of two comms. Then gates[] has the earliest call of each
 * comm in the cycle.
 */
static bool is_cycle_of_two(const struct waitgraph *g, uint32_t component, uint32_t gates[2])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n_gates; i++) {
		uint32_t k = 0;

		if (g->component[waitgraph_gate_node(g, i)] != component)
			continue;
		if (g->gates[i].kind != GATE_COLLECTIVE && g->gates[i].kind != GATE_ROOT)
			return false;
		while (k < n && g->gates[gates[k]].comm != g->gates[i].comm)
			k++;
		if (k == 2)
			return false;
		if (k == n)
			gates[n++] = i;
		else if (g->gates[i].seq < g->gates[gates[k]].seq)
			gates[k] = i;
	}
	return n == 2;
}

/*
 * Blames the ranks that made the two calls in another order than most ranks. *ret_done is false if
 * we do not know the order of any rank, or find no culprit by the order.
 */
static int blame_order(struct diagnosis *diag, const uint32_t gates[2], bool *ret_done)
{
	const struct waitgraph *g = &diag->s->g;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, g->n_ranks);
	struct call_order_vote vote;
	uint32_t n = 0;

	if (!ranks || call_order_ask(diag->s, gates[0], gates[1], &vote) < 0)
		return -ENOMEM;
	*ret_done = vote.n[CALL_ORDER_A] + vote.n[CALL_ORDER_B] > 0;
	if (!*ret_done)
		return 0;
	diag->order_allows = vote.unseen ? CW_CONFIDENCE_LIKELY : CW_CONFIDENCE_CERTAIN;
	if (vote.n[CALL_ORDER_A] == vote.n[CALL_ORDER_B])
		diag->order_allows = CW_CONFIDENCE_POSSIBLE;
	for (uint32_t r = 0; r < g->n_ranks; r++) {
		enum call_order usual =
			vote.n[CALL_ORDER_A] > vote.n[CALL_ORDER_B] ? CALL_ORDER_A : CALL_ORDER_B;
		bool tie = vote.n[CALL_ORDER_A] == vote.n[CALL_ORDER_B];

		if (vote.is_member[r] && vote.of[r] != CALL_ORDER_UNKNOWN &&
		    (tie || vote.of[r] != usual))
			ranks[n++] = r;
	}
	/*
	 * A cycle needs two orders. If all known orders are the same, a rank of the cycle with an
	 * unknown order has the other order. We blame the ranks with unknown order if they are the
	 * minority.
	 */
	if (!n && (!vote.n[CALL_ORDER_A] || !vote.n[CALL_ORDER_B])) {
		for (uint32_t r = 0; r < g->n_ranks; r++)
			if (vote.is_unseen[r] && g->component[r] == g->component[diag->main->node])
				ranks[n++] = r;
		if (n >= vote.n[CALL_ORDER_A] + vote.n[CALL_ORDER_B])
			n = 0;
		if (n > 1)
			diag->order_allows = CW_CONFIDENCE_POSSIBLE;
	}
	*ret_done = n > 0;
	return n ? set_culprits(diag, ranks, n) : 0;
}

/*
 * Blames the odd ranks of a cycle. If the order of calls shows them, we use the order. Otherwise
 * most ranks that could choose wait at one gate, and the odd ranks do not. This is true for an
 * inverted order in which no rank leaves a call early. If no gate has most of the ranks, we blame
 * the whole cycle.
 */
static int blame_cycle(struct diagnosis *diag)
{
	const struct waitgraph *g = &diag->s->g;
	uint32_t component = g->component[diag->main->node];
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, g->ranks_in[component]);
	bool *electors = call_order_electors(diag->s, component);
	uint32_t best = CW_SNAP_NONE, most = 0, n = 0, gates[2], *pivots, n_pivots = 0;
	bool tie = false, done = false;

	if (!ranks || !electors)
		return -ENOMEM;
	if (is_cycle_of_two(g, component, gates) && (blame_order(diag, gates, &done) < 0 || done))
		return done ? 0 : -ENOMEM;
	diag->order_allows = call_order_is_rooted(diag->s, component) ? CW_CONFIDENCE_POSSIBLE
								      : CW_CONFIDENCE_CERTAIN;
	for (uint32_t i = 0; i < g->n_gates; i++) {
		uint32_t inside = 0;

		if (g->component[waitgraph_gate_node(g, i)] != component)
			continue;
		for (uint32_t k = 0; k < g->gates[i].n_waiters; k++)
			inside += electors[g->gates[i].waiters[k]];
		tie = inside == most || (tie && inside < most);
		if (inside > most) {
			most = inside;
			best = i;
		}
	}
	if (tie && call_order_pivots(diag->s, component, &pivots, &n_pivots) < 0)
		return -ENOMEM;
	/*
	 * The pivots (call_order_pivots()) are the culprits: the other ranks only wait because of
	 * them. We do not know which pivot is wrong.
	 */
	if (n_pivots > 1 && n_pivots < g->ranks_in[component])
		diag->order_allows = CW_CONFIDENCE_POSSIBLE;
	if (n_pivots)
		return set_culprits(diag, pivots, n_pivots);
	for (uint32_t r = 0; r < g->n_ranks; r++) {
		bool usual = false;

		if (g->component[r] != component)
			continue;
		for (uint32_t k = g->wait_start[r]; !tie && k < g->wait_start[r + 1]; k++)
			usual = usual || g->waits[k] == best;
		if (!usual)
			ranks[n++] = r;
	}
	return set_culprits(diag, ranks, n);
}

/* Blames all ranks of the culprit's node. */
static int blame_node(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, snap->n_ranks);
	uint32_t n = 0;

	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].node == snap->ranks[diag->main->rank].node)
			ranks[n++] = i;
	return set_culprits(diag, ranks, n);
}

/* True if the related finding is the same trouble, so that its rank is a culprit too. */
static bool is_accomplice(const struct diagnosis *diag, const struct finding *f)
{
	const struct finding *m = diag->main;

	if (f->verdict_class != m->verdict_class || f->rank == CW_SNAP_NONE)
		return false;
	if (f->is_late && !m->is_late)
		return false;
	/* A rank that has not come yet has no part in another rank's error. */
	if (f->verdict_class == CW_CLASS_INIT_STUCK && f->has_failed != m->has_failed)
		return false;
	return alternatives_same_event(diag->s->snap, m, f);
}

/* True if the finding is a call that some members completed and its waiters did not. */
static bool is_unfinished(const struct diagnosis *diag, const struct finding *f)
{
	return f->verdict_class == CW_CLASS_IN_COLLECTIVE && f->detail == CW_DETAIL_UNFINISHED &&
	       f->rank == CW_SNAP_NONE && !f->connections &&
	       (f == diag->main || alternatives_same_event(diag->s->snap, diag->main, f));
}

/*
 * Lists the calls that some members completed and others did not, the main finding's first. They
 * are one trouble if waits connect them.
 */
static int list_unfinished(struct diagnosis *diag)
{
	const struct engine_context *s = diag->s;
	uint32_t part = independent_groups_find(diag->groups, &s->g, diag->main);

	diag->unfinished = cw_arena_new_array(&diag->s->arena, const struct finding *,
					      (size_t)s->n_findings + 1);
	if (!diag->unfinished)
		return -ENOMEM;
	diag->unfinished[diag->n_unfinished++] = diag->main;
	for (uint32_t i = 0; i < s->n_findings; i++)
		if (&s->findings[i] != diag->main && is_unfinished(diag, &s->findings[i]) &&
		    independent_groups_find(diag->groups, &s->g, &s->findings[i]) == part)
			diag->unfinished[diag->n_unfinished++] = &s->findings[i];
	return 0;
}

/*
 * Finds the dead devices. Each unfinished call shows that one of its waiters is dead: the
 * neighbours that starve beside it differ from call to call. We blame the smallest set of ranks
 * that explains all calls. If several sets are equally small, we blame all of them. If the search
 * is too hard, we blame the waiters of the main finding. Sets *ret_n ranks of `ranks`.
 */
static int find_dead_devices(struct diagnosis *diag, uint32_t *ranks, uint32_t *ret_n)
{
	struct engine_context *s = diag->s;
	struct hitting_set *sets =
		cw_arena_new_array(&s->arena, struct hitting_set, diag->n_unfinished);
	bool *is_dead = cw_arena_new_array(&s->arena, bool, s->g.n_ranks);
	int r;

	if (!sets || !is_dead)
		return -ENOMEM;
	for (uint32_t i = 0; i < diag->n_unfinished; i++) {
		const struct gate *gate = &s->g.gates[diag->unfinished[i]->gate];

		sets[i] = (struct hitting_set){ gate->waiters, gate->n_waiters };
	}
	r = hitting_sets_smallest(sets, diag->n_unfinished, s->g.n_ranks, &s->arena, is_dead);
	if (r < 0)
		return r;
	for (uint32_t i = 0; r == HITTING_SETS_TOO_HARD && i < s->g.n_ranks; i++)
		is_dead[i] = false;
	for (uint32_t i = 0; r == HITTING_SETS_TOO_HARD && i < sets[0].n; i++)
		is_dead[sets[0].elements[i]] = true;
	*ret_n = 0;
	for (uint32_t i = 0; i < s->g.n_ranks; i++)
		if (is_dead[i])
			ranks[(*ret_n)++] = i;
	return 0;
}

/*
 * Blames the ranks that did not finish a call that others completed. In a rooted collective the
 * data pass through the members one by one, and all members behind the stuck one are unfinished. So
 * there we blame a rank only if it is the only unfinished one. We do not blame the root, because it
 * gets the data last or needs none.
 */
static int blame_unfinished(struct diagnosis *diag)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	uint32_t nranks = diag->s->snap->comms[gate->comm].nranks;
	bool is_rooted = cw_op_has_root(gate->op_kind);
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, diag->s->g.n_ranks);
	uint32_t n, m;

	if (!ranks)
		return -ENOMEM;
	if (is_rooted && gate->n_waiters != 1)
		return 0;
	m = is_rooted ? engine_context_comm_rank(diag->s, gate->comm, gate->waiters[0]) : 0;
	if (is_rooted &&
	    (m == CW_SNAP_NONE || m >= nranks || !gate->op || gate->op->root == (int32_t)m))
		return 0;
	if (list_unfinished(diag) < 0 || find_dead_devices(diag, ranks, &n) < 0)
		return -ENOMEM;
	return set_culprits(diag, ranks, n);
}

/*
 * Lists other ranks of the culprit's process. If the process ended or stopped, we list all of them.
 * Otherwise we list the ranks that have not come either. One thread may make the calls of all
 * devices, for example. Returns the number of ranks, which may wait for the culprit alone.
 */
static uint32_t list_others_of_process(const struct diagnosis *diag, uint32_t *ranks)
{
	const struct engine_context *s = diag->s;
	const struct cw_snap_rank *culprit = &s->snap->ranks[diag->main->rank];
	bool is_whole = diag->main->verdict_class == CW_CLASS_PROCESS_DEAD ||
			cw_detail_is_hold(diag->main->detail);
	uint32_t n = 0;

	for (uint32_t i = 0; is_whole && i < s->snap->n_ranks; i++)
		if (cw_snap_rank_shares_process(culprit, &s->snap->ranks[i]))
			ranks[n++] = i;
	for (uint32_t i = 0; !is_whole && i < s->n_findings; i++) {
		const struct finding *f = &s->findings[i];

		if (is_accomplice(diag, f) &&
		    cw_snap_rank_shares_process(culprit, &s->snap->ranks[f->rank]))
			ranks[n++] = f->rank;
	}
	if (diag->main->detail == CW_DETAIL_OUTSIDE_NCCL && diag->main->since_ns)
		n += same_process_list_idle(s, diag->main->rank, &ranks[n]);
	return n;
}

/*
 * Blames the rank that has not come, its partner, the ranks of its process, and ranks in the same
 * trouble.
 */
static int blame_missing(struct diagnosis *diag)
{
	const struct engine_context *s = diag->s;
	uint32_t *ranks = cw_arena_new_array(
		&diag->s->arena, uint32_t,
		(size_t)diag->n_related + 2 * (size_t)s->snap->n_ranks + s->n_findings + 2);
	uint32_t n = 0, common;

	if (!ranks)
		return -ENOMEM;
	if (diag->main->verdict_class == CW_CLASS_P2P_UNMATCHED &&
	    diag->main->detail == CW_DETAIL_SIZE) {
		common = blocked_collective_common_party(diag->s, diag->main->comm);
		if (common != CW_SNAP_NONE)
			return set_culprits(diag, &common, 1);
	}
	if (diag->main->rank != CW_SNAP_NONE)
		ranks[n++] = diag->main->rank;
	if (n && diag->main->partner != CW_SNAP_NONE)
		ranks[n++] = diag->main->partner;
	for (uint32_t i = 0; n && i < diag->n_related; i++)
		if (is_accomplice(diag, diag->related[i]))
			ranks[n++] = diag->related[i]->rank;
	if (n)
		n += list_others_of_process(diag, &ranks[n]);
	return set_culprits(diag, ranks, n);
}

/* Blames the ranks that did not post their half of a message, or whose sizes differ. */
static int blame_messages(struct diagnosis *diag)
{
	const struct message_fault *fault = diag->main->messages;
	uint32_t *ranks = cw_arena_memdup(&diag->s->arena, fault->culprits, fault->n_culprits,
					  sizeof(*fault->culprits));

	return ranks ? set_culprits(diag, ranks, fault->n_culprits) : -ENOMEM;
}

/* True if a recording tells nothing about the rank: it has no dump of the rank and no end. */
static bool is_silent(const struct cw_snapshot *snap, uint32_t rank)
{
	return rank < snap->n_ranks && snap->ranks[rank].liveness == CW_LIVE_UNKNOWN &&
	       !(snap->ranks[rank].flags & CW_RANKF_HAS_RECORD);
}

/*
 * Blames the silent members of all groups in which ranks wait. The user has to get recordings of
 * these ranks. We do this only with recordings of at least half of the job. In a live job we blame
 * no rank just because we do not see it.
 */
static int blame_silent(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, snap->n_ranks);
	bool *wanted = cw_arena_new_array(&diag->s->arena, bool, snap->n_ranks);
	uint32_t n = 0, n_silent = 0;

	if (!ranks || !wanted)
		return -ENOMEM;
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		n_silent += is_silent(snap, i);
	if (2 * (uint64_t)n_silent > snap->n_ranks)
		return 0;
	for (uint32_t i = 0; i < diag->s->g.n_gates; i++) {
		const struct gate *gate = &diag->s->g.gates[i];
		const struct cw_snap_comm *c = &snap->comms[gate->comm];

		for (uint32_t m = 0; gate->n_unseen && m < c->nranks; m++)
			if (is_silent(snap, c->members[m].rank) && !c->members[m].known)
				wanted[c->members[m].rank] = true;
	}
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (wanted[i])
			ranks[n++] = i;
	return set_culprits(diag, ranks, n);
}

/* Blames both ends of the connection, or the ranks whose GPU or proxy is at fault. */
static int blame_connections(struct diagnosis *diag)
{
	const struct connection_judgement *c = diag->main->connections;
	uint32_t ends[2] = { c->link.sender, c->link.receiver };
	uint32_t *ranks;

	if (c->link.is_set) {
		diag->v->link = c->link;
		return set_culprits(diag, ends, 2);
	}
	ranks = cw_arena_memdup(&diag->s->arena, c->ranks, c->n_ranks, sizeof(*c->ranks));
	return ranks ? set_culprits(diag, ranks, c->n_ranks) : -ENOMEM;
}

static int name_culprits(struct diagnosis *diag)
{
	if (diag->main->messages)
		return blame_messages(diag);
	switch (diag->main->verdict_class) {
	case CW_CLASS_MISMATCH:
		return blame_minority(diag);
	case CW_CLASS_DEADLOCK:
		return blame_cycle(diag);
	case CW_CLASS_NODE_UNREACHABLE:
		return blame_node(diag);
	case CW_CLASS_UNKNOWN:
		return diag->main->detail == CW_DETAIL_NOT_VISIBLE ? blame_silent(diag) : 0;
	case CW_CLASS_IN_COLLECTIVE:
		if (diag->main->connections)
			return blame_connections(diag);
		if (diag->main->detail == CW_DETAIL_UNFINISHED && diag->main->rank == CW_SNAP_NONE)
			return blame_unfinished(diag);
		if (diag->main->detail == CW_DETAIL_UNFINISHED)
			return set_culprits(diag, &(uint32_t){ diag->main->rank }, 1);
		return blame_missing(diag);
	default:
		return blame_missing(diag);
	}
}

/* ---- related findings: other reasons for which the victims wait ---- */

/* Lists the other findings at the nodes that the victims wait for, directly or indirectly. */
static int find_related(struct diagnosis *diag)
{
	struct engine_context *s = diag->s;
	bool *seen;
	int r;

	diag->related = cw_arena_new_array(&diag->s->arena, const struct finding *, s->n_findings);
	seen = cw_arena_new_array(&diag->s->arena, bool, (size_t)s->g.n_ranks + s->g.n_gates);
	if (!diag->related || !seen)
		return -ENOMEM;
	r = chain_mark_downstream(s, diag->v->victims, diag->v->n_victims, seen);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < s->n_findings; i++) {
		const struct finding *f = &s->findings[i];
		bool shared = f->node != CW_SNAP_NONE
				      ? seen[f->node]
				      : f->gate != CW_SNAP_NONE &&
						seen[waitgraph_gate_node(&s->g, f->gate)];

		if (f != diag->main && shared)
			diag->related[diag->n_related++] = f;
	}
	return 0;
}

/* ---- the call in question, and its sides ---- */

static int copy_side(struct diagnosis *diag, const struct cw_side *from, struct cw_side *ret)
{
	*ret = *from;
	ret->ranks = cw_arena_memdup(diag->arena, from->ranks, from->n_ranks, sizeof(*from->ranks));
	return ret->ranks ? 0 : -ENOMEM;
}

/* Copies the sides of the differing calls. */
static int sides_of_mismatch(struct diagnosis *diag)
{
	const struct alignment *al = engine_context_sides(diag->s, diag->main);
	struct cw_verdict *v = diag->v;

	v->after_seq = al->after_seq;
	if (!al->knows_call)
		return 0; /* we know the sides, but not the number of the differing call */
	v->sides = cw_arena_new_array(diag->arena, struct cw_side, al->n_sides);
	if (!v->sides)
		return -ENOMEM;
	for (; v->n_sides < al->n_sides; v->n_sides++)
		if (copy_side(diag, &al->sides[v->n_sides], &v->sides[v->n_sides]) < 0)
			return -ENOMEM;
	return 0;
}

/* Makes two sides, the sender and the receiver, each with its half of the message if known. */
static int sides_of_messages(struct diagnosis *diag)
{
	const struct message_fault *fault = diag->main->messages;
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->main->comm];
	const struct cw_op *ops[] = { fault->send, fault->recv };
	uint32_t ranks[] = { c->members[fault->sender].rank, c->members[fault->receiver].rank };
	struct cw_verdict *v = diag->v;

	v->sides = cw_arena_new_array(diag->arena, struct cw_side, 2);
	if (!v->sides)
		return -ENOMEM;
	for (; v->n_sides < 2; v->n_sides++) {
		const struct cw_op *op = ops[v->n_sides];
		struct cw_side side = { .ranks = &ranks[v->n_sides], .n_ranks = 1 };

		if (op) {
			side.has_op = true;
			side.op = *op;
		}
		if (copy_side(diag, &side, &v->sides[v->n_sides]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Returns all ranks that are missing at the gate, including the missing ranks of its lower gates.
 */
static uint32_t *all_missing(struct diagnosis *diag, const struct gate *gate, uint32_t *ret_n)
{
	uint32_t *ranks = cw_arena_new_array(diag->arena, uint32_t, gate->n_missing_all);
	uint32_t n = 0;

	while (ranks) {
		memcpy(&ranks[n], gate->missing, gate->n_missing * sizeof(*ranks));
		n += gate->n_missing;
		if (gate->lower == CW_SNAP_NONE)
			break;
		gate = &diag->s->g.gates[gate->lower];
	}
	*ret_n = n;
	return ranks;
}

/* Makes one side of the ranks inside the call, and one side of the missing ranks, if any. */
static int sides_of_gate(struct diagnosis *diag)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	struct cw_verdict *v = diag->v;
	struct cw_side inside = { .has_op = gate->op != NULL,
				  .ranks = gate->waiters,
				  .n_ranks = gate->n_waiters };
	struct cw_side missing = { 0 };

	if (gate->op)
		inside.op = *gate->op;
	v->sides = cw_arena_new_array(diag->arena, struct cw_side, 2);
	if (!v->sides || copy_side(diag, &inside, &v->sides[0]) < 0)
		return -ENOMEM;
	v->n_sides = 1;
	align_sort_ranks(diag->s->snap, v->sides[0].ranks, v->sides[0].n_ranks);
	if (!gate->n_missing_all)
		return 0;
	missing.ranks = all_missing(diag, gate, &missing.n_ranks);
	if (!missing.ranks)
		return -ENOMEM;
	align_sort_ranks(diag->s->snap, missing.ranks, missing.n_ranks);
	v->sides[v->n_sides++] = missing;
	return 0;
}

/*
 * Fills the verdict from its main finding. First come the facts of the finding. Then come the steps
 * that the top of this file lists, and at last the failed calls of the culprits and the times.
 */
int diagnosis_describe(struct diagnosis *diag)
{
	const struct finding *f = diag->main;
	const struct cw_snapshot *snap = diag->s->snap;
	struct cw_verdict *v = diag->v;
	struct failed_call call;
	int r;

	v->verdict_class = f->verdict_class;
	v->detail = f->detail;
	v->is_proof = f->is_proof;
	v->is_left_behind = f->messages != NULL;
	v->has_ended = f->ended != NULL;
	if (f->ended)
		v->ended = (uint32_t)(f->ended - snap->ranks);
	v->comm = f->comm;
	v->coll_seq = f->seq;
	if (f->verdict_class == CW_CLASS_INIT_STUCK)
		v->n_crossed = waitgraph_crossed_makings(snap, &diag->s->g);
	for (uint32_t i = 0; v->n_crossed && i < diag->s->g.n_ranks; i++)
		v->is_crossed_behind |= !waitgraph_is_making(&diag->s->g, i);
	diag->is_culprit = cw_arena_new_array(&diag->s->arena, bool, diag->s->g.n_ranks);
	if (!diag->is_culprit)
		return -ENOMEM;
	/* The victims of the first culprit lead to the other culprits that they wait for. */
	r = search_upstream(diag);
	if (r == 0)
		r = find_related(diag);
	if (r == 0)
		r = name_culprits(diag);
	if (r == 0)
		r = search_upstream(diag);
	if (r == 0)
		r = alternatives_list(diag);
	if (r == 0 && f->messages)
		r = sides_of_messages(diag);
	else if (r == 0)
		r = f->verdict_class == CW_CLASS_MISMATCH ? sides_of_mismatch(diag)
							  : sides_of_gate(diag);
	if (r == 0)
		r = chain_describe(diag);
	v->has_failed_call = f->has_failed && v->n_culprits;
	for (uint32_t i = 0; v->has_failed_call && i < v->n_culprits; i++)
		v->has_failed_call =
			engine_context_failed_call(diag->s, f->gate, v->culprits[i].rank, &call);
	v->waiting_since_ns = f->since_ns;
	for (uint32_t m = 0; v->comm != CW_SNAP_NONE && m < snap->comms[v->comm].nranks; m++)
		if (snap->comms[v->comm].members[m].progress_ns > v->last_progress_ns)
			v->last_progress_ns = snap->comms[v->comm].members[m].progress_ns;
	return r;
}
