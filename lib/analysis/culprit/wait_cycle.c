/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/wait_cycle.h"

#include <errno.h>
#include <string.h>

#include "analysis/align/position.h"

/* We try to leave out so many gates of a component. Each costs one search of its gates. */
#define UNLISTED_MAX 64u

/* The clocks of different hosts differ by at most this much. */
#define CLOCK_SLACK_NS (INT64_C(500) * 1000000)

/*
 * True if all ranks of the cycle waited at one instant. The nodes sample at different times. So
 * each rank must have moved last before that instant, and its sample must come after it.
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

/*
 * A new leader has to find the incident of the leader before it. So the name of a cycle depends on
 * communicators and call numbers alone (engine_context_gate_before()).
 */
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

/* True if a rank outside of the cycle is missing at the gate, or at a gate below it. */
static bool misses_others(const struct engine_context *s, uint32_t gate, uint32_t component)
{
	for (; gate != CW_SNAP_NONE; gate = s->g.gates[gate].lower)
		for (uint32_t i = 0; i < s->g.gates[gate].n_missing; i++)
			if (s->g.component[s->g.gates[gate].missing[i]] != component)
				return true;
	return false;
}

/*
 * ---- the waits that block a rank ----
 *
 * In the graph a rank waits as a whole. A call that its host has made waits for less. It waits for
 * earlier calls of its stream, and for earlier calls of its comm, which run in order. If we know
 * that the rank waits in such an earlier call, its waits on other streams do not keep it from this
 * gate: they may end long before the gate opens. We do not know which streams wait for each other
 * by events. So without such an earlier call, all waits of the rank count.
 */

static const struct cw_snap_member *member_at(const struct engine_context *s, uint32_t gate,
					      uint32_t rank)
{
	uint32_t comm = s->g.gates[gate].comm, m = engine_context_comm_rank(s, comm, rank);

	return m == CW_SNAP_NONE ? NULL : &s->snap->comms[comm].members[m];
}

/*
 * True if the rank's call at gate waits_at comes before its call at `gate`, in the order of the
 * comm or of the stream.
 */
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

/* True if the rank is missing at `gate` because it waits at gate waits_at. */
static bool holds_up(const struct engine_context *s, uint32_t waits_at, uint32_t gate,
		     uint32_t rank)
{
	const struct waitgraph *g = &s->g;
	const struct cw_snap_member *m = member_at(s, gate, rank);
	bool has_made_call =
		(g->gates[gate].kind == GATE_COLLECTIVE || g->gates[gate].kind == GATE_ROOT) && m &&
		(m->known & CW_KNOWN_ENTERED) && m->coll_entered >= g->gates[gate].seq;
	uint64_t stream = 0; /* stream of the rank's call at `gate`; 0 = not known */

	if (!has_made_call)
		return true;
	for (uint32_t i = 0; i < m->n_window; i++)
		if (position_is_step(&m->window[i]) &&
		    m->window[i].coll_seq == g->gates[gate].seq) {
			stream = m->window[i].stream;
			break;
		}
	if (is_before(s, waits_at, gate, rank, stream))
		return true;
	for (uint32_t i = g->wait_start[rank]; i < g->wait_start[rank + 1]; i++)
		if (is_before(s, g->waits[i], gate, rank, stream))
			return false;
	return true;
}

/* A gate on the path, and the edge of this gate that we follow next. The lower gate comes first. */
struct step {
	uint32_t gate, missing, wait;
	bool has_lower;
};

/* Returns the next gate that keeps the gate of this step shut; CW_SNAP_NONE = no more. */
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

enum mark { NOT_SEEN, ON_PATH, LEFT };

static bool is_in(const struct engine_context *s, uint32_t gate, uint32_t component)
{
	return s->g.component[waitgraph_gate_node(&s->g, gate)] == component;
}

/* True if a path from `start` returns to a gate that it has passed. Searches depth first. */
static bool finds_circle_from(const struct engine_context *s, uint32_t start, uint32_t component,
			      struct step *path, unsigned char *marks)
{
	uint32_t n = 1, next;

	path[0] = (struct step){ .gate = start };
	marks[start] = ON_PATH;
	while (n) {
		next = next_gate(s, &path[n - 1]);
		if (next == CW_SNAP_NONE) {
			marks[path[--n].gate] = LEFT;
			continue;
		}
		if (s->g.component[waitgraph_gate_node(&s->g, next)] != component)
			continue;
		if (marks[next] == ON_PATH)
			return true;
		if (marks[next] == NOT_SEEN) {
			marks[next] = ON_PATH;
			path[n++] = (struct step){ .gate = next };
		}
	}
	return false;
}

/* True if the gates of the component still contain a circle without the gate `but`. */
static bool has_circle(const struct engine_context *s, uint32_t component, uint32_t but,
		       struct step *path, unsigned char *marks)
{
	memset(marks, NOT_SEEN, s->g.n_gates);
	if (but != CW_SNAP_NONE)
		marks[but] = LEFT;
	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (is_in(s, i, component) && marks[i] == NOT_SEEN &&
		    finds_circle_from(s, i, component, path, marks))
			return true;
	return false;
}

int wait_cycle_unlisted(struct engine_context *s, uint32_t component, uint32_t *ret_gate)
{
	struct step *path = cw_arena_new_array(&s->arena, struct step, s->g.n_gates);
	unsigned char *marks = cw_arena_new_array(&s->arena, unsigned char, s->g.n_gates);
	uint32_t found = CW_SNAP_NONE, n = 0, n_found = 0, tried = 0;

	if (!path || !marks)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];
		bool is_unlisted = gate->n_unlisted && gate->n_missing == 1;

		if (!is_in(s, i, component))
			continue;
		n += !is_unlisted;
		if (!is_unlisted || tried++ >= UNLISTED_MAX ||
		    has_circle(s, component, i, path, marks))
			continue;
		found = i;
		n_found++;
	}
	*ret_gate = n && n_found == 1 && tried <= UNLISTED_MAX ? found : CW_SNAP_NONE;
	return 0;
}

/*
 * Judges a component of the graph. It is no cycle if some rank of it waits in a rooted call that a
 * rank outside alone may block. It is a real cycle if its gates contain a circle in which each gate
 * keeps the next one shut. Otherwise it may be a cycle, unless some rank of it also waits for a
 * rank outside.
 */
int wait_cycle_judge(struct engine_context *s, uint32_t component)
{
	struct step *path;
	unsigned char *marks;

	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component &&
		    cw_op_has_root(s->g.gates[i].op_kind) && misses_others(s, i, component))
			return WAIT_CYCLE_NONE;
	path = cw_arena_new_array(&s->arena, struct step, s->g.n_gates);
	marks = cw_arena_new_array(&s->arena, unsigned char, s->g.n_gates);
	if (!path || !marks)
		return -ENOMEM;
	if (has_circle(s, component, CW_SNAP_NONE, path, marks))
		return WAIT_CYCLE_REAL;
	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component &&
		    (s->g.gates[i].n_unseen || misses_others(s, i, component)))
			return WAIT_CYCLE_NONE;
	return WAIT_CYCLE_MAYBE;
}

/* ---- a half of a message that was never posted ---- */

/*
 * True if member `odd` has posted fewer sends and receives than all others, which have equal
 * numbers.
 */
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
 * Returns the gate at which a rank of the cycle did not post its half of a send or receive;
 * CW_SNAP_NONE = none. Such a rank goes on to the next collective. There it waits for the rank that
 * waits for the missing half. The cycle then looks like a wrong order of calls. If all members
 * usually post the same numbers, the member that has posted fewer is the culprit.
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
	/* The number of a member's open calls does not show how many it has posted. */
	if (found == CW_SNAP_NONE || s->g.gates[found].n_missing != 1 ||
	    s->g.gates[found].n_unlisted)
		return CW_SNAP_NONE;
	m = engine_context_comm_rank(s, s->g.gates[found].comm, s->g.gates[found].missing[0]);
	return m != CW_SNAP_NONE && has_posted_fewer(&s->snap->comms[s->g.gates[found].comm], m)
		       ? found
		       : CW_SNAP_NONE;
}

void wait_cycle_classify_pair(const struct engine_context *s, uint32_t gate, struct finding *f)
{
	const struct gate *g = &s->g.gates[gate];

	*f = (struct finding){ .verdict_class = CW_CLASS_IN_COLLECTIVE,
			       .detail = CW_DETAIL_PAIR,
			       .node = waitgraph_gate_node(&s->g, gate),
			       .rank = g->oldest,
			       .partner = g->missing[0],
			       .gate = gate,
			       .comm = g->comm,
			       .since_ns = g->since_ns };
}

void wait_cycle_classify(const struct engine_context *s, uint32_t name, bool is_real,
			 struct finding *f)
{
	const struct gate *gate = &s->g.gates[name];
	uint32_t component = s->g.component[waitgraph_gate_node(&s->g, name)], not_posted;

	*f = (struct finding){ .verdict_class = CW_CLASS_DEADLOCK,
			       .detail = CW_DETAIL_ORDER,
			       .node = waitgraph_gate_node(&s->g, name),
			       .rank = CW_SNAP_NONE,
			       .partner = CW_SNAP_NONE,
			       .gate = name,
			       .comm = gate->comm,
			       .seq = gate->kind == GATE_P2P ? 0 : gate->seq };
	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		int64_t ns = s->g.gates[i].since_ns;

		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component && ns &&
		    (!f->since_ns || ns < f->since_ns))
			f->since_ns = ns;
	}
	f->is_proof = is_real && waited_at_once(s, component);
	not_posted = gate_not_posted(s, component);
	if (not_posted == CW_SNAP_NONE)
		return;
	gate = &s->g.gates[not_posted];
	f->verdict_class = CW_CLASS_P2P_UNMATCHED;
	f->detail = CW_DETAIL_NOT_POSTED;
	f->node = f->rank = gate->missing[0];
	f->gate = not_posted;
	f->comm = gate->comm;
	f->seq = 0;
	f->since_ns = gate->since_ns;
}
