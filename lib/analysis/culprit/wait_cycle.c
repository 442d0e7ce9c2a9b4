/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/wait_cycle.h"

#include <errno.h>
#include <string.h>

#include "analysis/align/position.h"

/* Uncertainty of times that come from different hosts. */
#define CLOCK_SLACK_NS (INT64_C(500) * 1000000)

/*
 * Snapshots are not taken everywhere at once. A cycle is real if there was an instant at which all
 * its ranks were waiting: each since it last moved, each still when it was sampled.
 */
static bool waited_at_once(const struct engine_context *s, uint32_t component)
{
	const struct cw_snapshot *snap = s->snap;
	int64_t latest_start = INT64_MIN, earliest_sample = INT64_MAX;

	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];

		if (s->g.component[waitgraph_gate_node(&s->g, i)] != component)
			continue;
		if (gate->n_soft)
			return false;
		for (uint32_t m = 0; m < snap->comms[gate->comm].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[gate->comm].members[m];
			int64_t sampled_ns;

			if (member->rank >= snap->n_ranks ||
			    s->g.component[member->rank] != component)
				continue;
			sampled_ns = snap->ranks[member->rank].sampled_ns;
			if (sampled_ns && sampled_ns < earliest_sample)
				earliest_sample = sampled_ns;
			if (member->progress_ns > latest_start)
				latest_start = member->progress_ns;
			if (member->pending && member->pending->enter_ns > latest_start)
				latest_start = member->pending->enter_ns;
		}
	}
	return earliest_sample != INT64_MAX && latest_start + CLOCK_SLACK_NS < earliest_sample;
}

uint32_t *wait_cycle_names(struct engine_context *s)
{
	const struct waitgraph *g = &s->g;
	uint32_t *names = cw_arena_new_array(&s->arena, uint32_t, g->n_components);

	if (!names)
		return NULL;
	memset(names, 0xff, g->n_components * sizeof(*names));
	for (uint32_t i = 0; i < g->n_gates; i++) {
		uint32_t *n = &names[g->component[waitgraph_gate_node(g, i)]];

		if (*n == CW_SNAP_NONE ||
		    engine_context_gate_before(s, &g->gates[i], &g->gates[*n]))
			*n = i;
	}
	return names;
}

/* 0: of none of its waits it is known. */
static int64_t since_of(const struct engine_context *s, uint32_t component)
{
	int64_t since = 0;

	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		int64_t ns = s->g.gates[i].since_ns;

		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component && ns &&
		    (!since || ns < since))
			since = ns;
	}
	return since;
}

/* Somebody who has not come to the gate, or to one below it, is not of the cycle. */
static bool misses_others(const struct engine_context *s, uint32_t gate, uint32_t component)
{
	for (; gate != CW_SNAP_NONE; gate = s->g.gates[gate].lower)
		for (uint32_t i = 0; i < s->g.gates[gate].n_missing; i++)
			if (s->g.component[s->g.gates[gate].missing[i]] != component)
				return true;
	return false;
}

static bool is_closed(const struct engine_context *s, uint32_t component)
{
	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component &&
		    cw_op_has_root(s->g.gates[i].op_kind) && misses_others(s, i, component))
			return false;
	return true;
}

/* ---- what holds a rank up ---- */

/*
 * The graph waits with whole ranks. A call that the host has made waits for less: for what is
 * before it on its stream, and in its comm, whose calls run in order. Where the rank is known to
 * wait in one of those, what it waits for on other streams does not keep it from this gate, and may
 * be long over when that one opens. Nobody knows which streams wait for which by events: without
 * such a call all that the rank waits for counts.
 */

static const struct cw_snap_member *member_at(const struct engine_context *s, uint32_t gate,
					      uint32_t rank)
{
	uint32_t comm = s->g.gates[gate].comm, m = engine_context_comm_rank(s, comm, rank);

	return m == CW_SNAP_NONE ? NULL : &s->snap->comms[comm].members[m];
}

static bool has_made_call(const struct gate *gate, const struct cw_snap_member *m)
{
	return (gate->kind == GATE_COLLECTIVE || gate->kind == GATE_ROOT) && m &&
	       (m->known & CW_KNOWN_ENTERED) && m->coll_entered >= gate->seq;
}

/* The stream of its call at the gate; 0 = not known. */
static uint64_t stream_of_call(const struct gate *gate, const struct cw_snap_member *m)
{
	for (uint32_t i = 0; i < m->n_window; i++)
		if (position_is_step(&m->window[i]) && m->window[i].coll_seq == gate->seq)
			return m->window[i].stream;
	return 0;
}

static bool is_before(const struct engine_context *s, uint32_t waits_at, uint32_t gate,
		      uint32_t rank, uint64_t stream)
{
	const struct cw_snap_member *m = member_at(s, waits_at, rank);
	struct position p;

	if (s->g.gates[waits_at].comm == s->g.gates[gate].comm)
		return true;
	if (!stream || !m)
		return false;
	p = position_of(s->snap, m);
	return p.op && p.op->stream == stream;
}

/* Whether that the rank waits at the one gate is why it is missing at the other. */
static bool holds_up(const struct engine_context *s, uint32_t waits_at, uint32_t gate,
		     uint32_t rank)
{
	const struct waitgraph *g = &s->g;
	const struct cw_snap_member *m = member_at(s, gate, rank);
	uint64_t stream;

	if (!has_made_call(&g->gates[gate], m))
		return true;
	stream = stream_of_call(&g->gates[gate], m);
	if (is_before(s, waits_at, gate, rank, stream))
		return true;
	for (uint32_t i = g->wait_start[rank]; i < g->wait_start[rank + 1]; i++)
		if (is_before(s, g->waits[i], gate, rank, stream))
			return false;
	return true;
}

/* A gate on the way, and which of its edges is the next: the lower gate first. */
struct step {
	uint32_t gate, missing, wait;
	bool has_lower;
};

/* The next gate that holds this one shut; CW_SNAP_NONE = no more. */
static uint32_t next_gate(const struct engine_context *s, struct step *at)
{
	const struct waitgraph *g = &s->g;
	const struct gate *gate = &g->gates[at->gate];

	if (!at->has_lower) {
		at->has_lower = true;
		if (gate->lower != CW_SNAP_NONE)
			return gate->lower;
	}
	for (; at->missing < gate->n_missing; at->missing++, at->wait = 0) {
		uint32_t rank = gate->missing[at->missing];

		while (g->wait_start[rank] + at->wait < g->wait_start[rank + 1]) {
			uint32_t other = g->waits[g->wait_start[rank] + at->wait++];

			if (other != at->gate && holds_up(s, other, at->gate, rank))
				return other;
		}
	}
	return CW_SNAP_NONE;
}

enum mark { NOT_SEEN, ON_THE_WAY, LEFT };

static bool goes_round_from(const struct engine_context *s, uint32_t start, uint32_t component,
			    struct step *way, unsigned char *marks)
{
	uint32_t n = 1, next;

	way[0] = (struct step){ .gate = start };
	marks[start] = ON_THE_WAY;
	while (n) {
		next = next_gate(s, &way[n - 1]);
		if (next == CW_SNAP_NONE) {
			marks[way[--n].gate] = LEFT;
			continue;
		}
		if (s->g.component[waitgraph_gate_node(&s->g, next)] != component)
			continue;
		if (marks[next] == ON_THE_WAY)
			return true;
		if (marks[next] == NOT_SEEN) {
			marks[next] = ON_THE_WAY;
			way[n++] = (struct step){ .gate = next };
		}
	}
	return false;
}

/* 1 = there is a circle in it of what holds up what, 0 = none, -ENOMEM. */
static int goes_round(struct engine_context *s, uint32_t component)
{
	struct step *way = cw_arena_new_array(&s->arena, struct step, s->g.n_gates);
	unsigned char *marks = cw_arena_new_array(&s->arena, unsigned char, s->g.n_gates);

	if (!way || !marks)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component &&
		    marks[i] == NOT_SEEN && goes_round_from(s, i, component, way, marks))
			return 1;
	return 0;
}

/* Somebody in it waits for somebody outside, too, whom that may wait for alone. */
static bool is_held_from_outside(const struct engine_context *s, uint32_t component)
{
	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component &&
		    (s->g.gates[i].n_unseen || misses_others(s, i, component)))
			return true;
	return false;
}

int wait_cycle_judge(struct engine_context *s, uint32_t component)
{
	int r;

	if (!is_closed(s, component))
		return WAIT_CYCLE_NONE;
	r = goes_round(s, component);
	if (r < 0)
		return r;
	if (r > 0)
		return WAIT_CYCLE_REAL;
	return is_held_from_outside(s, component) ? WAIT_CYCLE_NONE : WAIT_CYCLE_MAYBE;
}

/* ---- a half that was left out ---- */

/* Whether all members of the comm but that one have posted as many sends and receives, it fewer. */
static bool has_posted_fewer(const struct cw_snap_comm *c, uint32_t odd)
{
	const struct cw_snap_member *mine = &c->members[odd], *usual = NULL;
	uint32_t n = 0;

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];

		if (member->rank == CW_SNAP_NONE || !(member->known & CW_KNOWN_P2P))
			return false;
		if (m == odd)
			continue;
		if (usual && (usual->sends != member->sends || usual->recvs != member->recvs))
			return false;
		usual = member;
		n++;
	}
	return n > 1 && mine->sends + mine->recvs < usual->sends + usual->recvs;
}

/*
 * A rank that leaves out its half of a send or receive goes on to the next collective, and waits
 * there for the very rank that waits for the other half: a cycle, as if the order were wrong. In a
 * comm in which everybody posts the same number, the one that has posted fewer is to blame.
 */
static uint32_t gate_not_posted(const struct engine_context *s, uint32_t component)
{
	uint32_t found = CW_SNAP_NONE, m;

	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		if (s->g.gates[i].kind != GATE_P2P ||
		    s->g.component[waitgraph_gate_node(&s->g, i)] != component)
			continue;
		if (found != CW_SNAP_NONE)
			return CW_SNAP_NONE;
		found = i;
	}
	if (found == CW_SNAP_NONE || s->g.gates[found].n_missing != 1)
		return CW_SNAP_NONE;
	m = engine_context_comm_rank(s, s->g.gates[found].comm, s->g.gates[found].missing[0]);
	return m != CW_SNAP_NONE && has_posted_fewer(&s->snap->comms[s->g.gates[found].comm], m)
		       ? found
		       : CW_SNAP_NONE;
}

static void classify_not_posted(const struct engine_context *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];

	f->verdict_class = CW_CLASS_P2P_UNMATCHED;
	f->detail = CW_DETAIL_NOT_POSTED;
	f->node = f->rank = gate->missing[0];
	f->gate = g;
	f->comm = gate->comm;
	f->seq = 0;
	f->since_ns = gate->since_ns;
}

void wait_cycle_classify(const struct engine_context *s, uint32_t name, bool is_real,
			 struct finding *f)
{
	uint32_t not_posted;
	const struct gate *gate = &s->g.gates[name];

	*f = (struct finding){ .verdict_class = CW_CLASS_DEADLOCK,
			       .detail = CW_DETAIL_ORDER,
			       .node = waitgraph_gate_node(&s->g, name),
			       .rank = CW_SNAP_NONE,
			       .partner = CW_SNAP_NONE,
			       .gate = name,
			       .comm = gate->comm,
			       .seq = gate->kind == GATE_P2P ? 0 : gate->seq,
			       .since_ns = since_of(
				       s, s->g.component[waitgraph_gate_node(&s->g, name)]) };
	f->is_proof = is_real && waited_at_once(s, s->g.component[f->node]);
	not_posted = gate_not_posted(s, s->g.component[f->node]);
	if (not_posted != CW_SNAP_NONE)
		classify_not_posted(s, not_posted, f);
}
