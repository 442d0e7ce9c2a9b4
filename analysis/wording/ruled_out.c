/* SPDX-License-Identifier: Apache-2.0 */
/* What the verdict is not, and by what evidence. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "analysis/align/position.h"
#include "analysis/wording/phrase.h"
#include "analysis/wording/wording_private.h"

static int rule_out(struct incident *inc, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int rule_out(struct incident *inc, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	inc->v->ruled_out[inc->v->n_ruled_out] = arena_strdup(inc->arena, text);
	if (!inc->v->ruled_out[inc->v->n_ruled_out])
		return -ENOMEM;
	inc->v->n_ruled_out++;
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

static int rule_out_mismatch(struct incident *inc)
{
	const struct cw_snap_comm *c = &inc->s->snap->comms[inc->v->comm];
	uint32_t *ranks = arena_new_array(&inc->s->arena, uint32_t, c->nranks);
	struct phrase who, comm;
	uint32_t n = 0;

	if (!ranks)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank != CW_SNAP_NONE &&
		    knows_call(&c->members[m], inc->v->coll_seq))
			ranks[n++] = c->members[m].rank;
	if (n < 2 || inc->s->alignments[inc->v->comm].seq)
		return 0;
	return rule_out(inc, "no mismatch: %s made the same call as #%" PRIu64 " on %s",
			phrase_ranks(inc->s->snap, ranks, n, &who), inc->v->coll_seq,
			phrase_comm(inc->s->snap, inc->v->comm, &comm));
}

/* Where nobody can be blamed for a call that does not end, people ask for this first. */
static int rule_out_setup(struct incident *inc)
{
	const struct cw_snapshot *snap = inc->s->snap;
	const struct cw_snap_comm *c = &snap->comms[inc->v->comm];
	const struct cw_snap_rank *first = NULL;
	struct phrase what = { "" };

	if (inc->main->setup || inc->v->n_culprits ||
	    (inc->v->klass != CW_CLASS_IN_COLLECTIVE && inc->v->klass != CW_CLASS_INIT_STUCK))
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
	phrase_trait(snap, inc->v->comm, c->members[0].rank, CW_DETAIL_VERSION, what.text,
		     sizeof(what.text));
	return rule_out(inc,
			"no mixed versions: all members %s, and with the same "
			"NCCL_* variables",
			what.text);
}

int ruled_out_list(struct incident *inc)
{
	const struct cw_snapshot *snap = inc->s->snap;
	uint32_t dead = 0, seen = 0, cycles = 0, silent = 0;
	int r = 0;

	inc->v->ruled_out = arena_new_array(inc->arena, char *, 5);
	if (!inc->v->ruled_out)
		return -ENOMEM;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *rank = &snap->ranks[i];

		/* What a node that is silent said last says nothing of now. */
		if (rank->node >= snap->n_nodes ||
		    snap->nodes[rank->node].state != CW_NODE_REPORTING)
			continue;
		seen++;
		dead += rank->liveness == CW_LIVE_UNKNOWN || cw_liveness_is_dead(rank->liveness);
	}
	for (uint32_t i = 0; i < inc->s->g.n_components; i++)
		cycles += inc->s->g.ranks_in[i] > 1;
	for (uint32_t i = 0; i < snap->n_nodes; i++)
		silent += snap->nodes[i].state != CW_NODE_REPORTING;
	if (inc->v->klass != CW_CLASS_MISMATCH && inc->v->coll_seq)
		r = rule_out_mismatch(inc);
	if (r == 0 && inc->v->comm != CW_SNAP_NONE)
		r = rule_out_setup(inc);
	if (r == 0 && !dead && seen)
		r = rule_out(inc, "no death: all %" PRIu32 " processes that are seen are alive",
			     seen);
	if (r == 0 && !cycles)
		r = rule_out(inc, "no deadlock: nobody waits in a circle");
	if (r == 0 && !silent && snap->n_nodes)
		r = rule_out(inc,
			     snap->n_nodes == 1 ? "no lost node: the only one reports"
						: "no lost node: all %" PRIu32 " report",
			     snap->n_nodes);
	return r;
}
