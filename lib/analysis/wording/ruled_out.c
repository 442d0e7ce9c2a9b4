/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/ruled_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "analysis/align/position.h"
#include "analysis/wording/phrase.h"

static int rule_out(struct diagnosis *diag, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int rule_out(struct diagnosis *diag, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	diag->v->ruled_out[diag->v->n_ruled_out] = cw_arena_strdup(diag->arena, text);
	if (!diag->v->ruled_out[diag->v->n_ruled_out])
		return -ENOMEM;
	diag->v->n_ruled_out++;
	return 0;
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

/* True if we know this member's call, or if the member has not entered it. */
static bool is_compared(const struct cw_snap_member *m, uint64_t seq)
{
	return knows_call(m, seq) ||
	       ((m->known & CW_KNOWN_ENTERED) && m->rank != CW_SNAP_NONE && m->coll_entered < seq);
}

static int rule_out_mismatch(struct diagnosis *diag)
{
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->v->comm];
	uint32_t *ranks = cw_arena_new_array(&diag->s->arena, uint32_t, c->nranks);
	struct phrase who, comm;
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
	return rule_out(diag, "no mismatch: %s made the same call as #%" PRIu64 " on %s",
			phrase_ranks(diag->s->snap, ranks, n, &who), diag->v->coll_seq,
			phrase_comm(diag->s->snap, diag->v->comm, &comm));
}

/* If no rank can be blamed for a call that does not end, users ask for a differing setup first. */
static int rule_out_setup(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_snap_comm *c = &snap->comms[diag->v->comm];
	const struct cw_snap_rank *first = NULL;
	struct phrase what = { "" };

	if (diag->main->setup || diag->v->n_culprits ||
	    (diag->v->verdict_class != CW_CLASS_IN_COLLECTIVE &&
	     diag->v->verdict_class != CW_CLASS_INIT_STUCK))
		return 0;
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_rank *r;

		if (c->members[m].rank == CW_SNAP_NONE)
			return 0;
		r = &snap->ranks[c->members[m].rank];
		first = first ? first : r;
		if (!r->nccl_version || r->nccl_version != first->nccl_version ||
		    r->env_hash != first->env_hash)
			return 0;
	}
	phrase_trait(snap, diag->v->comm, c->members[0].rank, CW_DETAIL_VERSION, what.text,
		     sizeof(what.text));
	return rule_out(diag,
			"no mixed versions: all members %s and have the same "
			"NCCL_* variables",
			what.text);
}

/* Recordings do not name their nodes. */
static bool has_named_nodes(const struct cw_snapshot *snap)
{
	return snap->n_nodes && snap->nodes[0].name && *snap->nodes[0].name;
}

static int rule_out_death(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].liveness == CW_LIVE_UNKNOWN ||
		    cw_liveness_is_dead(snap->ranks[i].liveness))
			return 0;
	return rule_out(diag,
			"no dead process: all %" PRIu32
			" visible processes that share communicators are alive",
			snap->n_ranks);
}

static int rule_out_cycle(struct diagnosis *diag)
{
	for (uint32_t i = 0; i < diag->s->g.n_components; i++)
		if (diag->s->g.ranks_in[i] > 1)
			return 0;
	return rule_out(diag, "no deadlock: there is no cycle of waits");
}

static int rule_out_node(struct diagnosis *diag)
{
	uint32_t n = diag->s->snap->n_nodes;

	if (!has_named_nodes(diag->s->snap))
		return 0;
	if (n == 2)
		return rule_out(diag, "no lost node: both nodes report");
	return rule_out(diag,
			n == 1 ? "no lost node: the only node reports"
			       : "no lost node: all %" PRIu32 " nodes report",
			n);
}

/* A cause is ruled out only if we looked for it and could have seen it. */
int ruled_out_list(struct diagnosis *diag)
{
	uint32_t spots = diag->v->blind_spots;
	bool sees_ranks = diag->s->snap->n_ranks && !(spots & 1u << CW_BLIND_RANK);
	int r = 0;

	diag->v->ruled_out = cw_arena_new_array(diag->arena, char *, 5);
	if (!diag->v->ruled_out)
		return -ENOMEM;
	if (diag->v->verdict_class != CW_CLASS_MISMATCH && diag->v->coll_seq)
		r = rule_out_mismatch(diag);
	if (r == 0 && diag->v->comm != CW_SNAP_NONE)
		r = rule_out_setup(diag);
	if (r == 0 && sees_ranks)
		r = rule_out_death(diag);
	if (r == 0 && !spots)
		r = rule_out_cycle(diag);
	if (r == 0 && sees_ranks)
		r = rule_out_node(diag);
	return r;
}
