/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps from a snapshot to one sentence about one rank:
 *
 *  1. Did all members make the same calls? We align each comm by coll_seq, and note the first call
 *     in which two members differ (align.h). The difference stays true however long the ranks wait.
 *  2. Which rank waits for which? Ranks wait at gates: calls that some members have not entered
 *     (waitgraph.h). Most ranks of a hang wait there, and none of these is to blame.
 *  3. Where does the waiting end? It ends at a rank that waits for no other, at a gate that does
 *     not open although all members have entered, or in a cycle. Each end gets a class from the
 *     facts about it (culprit.c).
 *  4. Which end matters? We prefer proof over patience, stuck over slow, and old over young. A
 *     healthy job has ends too: a straggler is one for some milliseconds.
 *  5. Which ranks are concerned? All ranks that wait for the end, directly or indirectly, are
 *     victims. If the same victims wait for another end of the same class, that end is an
 *     accomplice. An end of another class is another possible answer (diagnosis.c).
 *  6. How sure is the answer (certainty.c), and how do we word it (wording.c)?
 *  7. Are there more troubles? An end that concerns none of these ranks is a separate trouble
 *     (independent_groups.c) with its own verdict.
 */
#include "analysis/verdict.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/culprit/alternatives.h"
#include "analysis/culprit/certainty.h"
#include "analysis/culprit/culprit.h"
#include "analysis/culprit/death_order.h"
#include "analysis/culprit/diagnosis.h"
#include "analysis/culprit/engine_context.h"
#include "analysis/culprit/independent_groups.h"
#include "analysis/wording/wording.h"
#include "model/signature.h"

/* True if the rank can do nothing more: its process ended, or its call failed. */
static bool is_end(const struct finding *f)
{
	return f->verdict_class == CW_CLASS_PROCESS_DEAD || f->has_failed;
}

/* True if finding a matters more than finding b. */
static bool outranks(const struct engine_context *s, const struct finding *a,
		     const struct finding *b)
{
	if (a->tier != b->tier)
		return a->tier > b->tier;
	if (engine_context_explains(s, a, b) || engine_context_explains(s, b, a))
		return engine_context_explains(s, a, b);
	/*
	 * We prefer an invisible rank over a collective that every rank entered, because the latter
	 * shows no fault.
	 */
	if (a->verdict_class == CW_CLASS_UNKNOWN && b->verdict_class == CW_CLASS_UNKNOWN &&
	    a->detail != b->detail &&
	    (a->detail == CW_DETAIL_PROGRESS_UNKNOWN || b->detail == CW_DETAIL_PROGRESS_UNKNOWN))
		return b->detail == CW_DETAIL_PROGRESS_UNKNOWN;
	/* One of two named ranks says more than a call of which no progress is known. */
	if ((a->detail == CW_DETAIL_PAIR && b->verdict_class == CW_CLASS_UNKNOWN) ||
	    (b->detail == CW_DETAIL_PAIR && a->verdict_class == CW_CLASS_UNKNOWN))
		return a->detail == CW_DETAIL_PAIR;
	if (is_end(a) && is_end(b)) {
		if (a->is_late != b->is_late)
			return b->is_late;
		if (a->is_first != b->is_first)
			return a->is_first;
	}
	/* 0 = unknown */
	if (a->since_ns != b->since_ns)
		return a->since_ns && (!b->since_ns || a->since_ns < b->since_ns);
	if (a->verdict_class != b->verdict_class)
		return a->verdict_class < b->verdict_class;
	if (a->rank != b->rank && a->rank != CW_SNAP_NONE && b->rank != CW_SNAP_NONE)
		return s->snap->ranks[a->rank].rank < s->snap->ranks[b->rank].rank;
	return false;
}

/* ---- one verdict for each independent trouble ---- */

struct selection {
	struct engine_context s;
	struct independent_groups independent_groups;
	/*
	 * Indexed by the node of the graph that represents a part of the job: true if a verdict
	 * covers the part.
	 */
	bool *is_part_selected;
	bool *is_finding_selected; /* per finding: we have examined it */
	bool *is_blamed;           /* per rank: a verdict blames it */
	struct cw_verdict_list *list;
};

/*
 * Returns the finding that replaces `lost`, an unreachable node. We know nothing about such a node:
 * its ranks may wait like all others. If the same waiting also ends at a stopped rank, that rank
 * certainly blocks the others. Then we blame the stopped rank, and the node becomes an alternative.
 * The lengths of the two waits and their patience do not matter.
 */
static const struct finding *seen_instead(const struct selection *t, const struct finding *lost)
{
	const struct engine_context *s = &t->s;
	uint32_t part = independent_groups_find(&t->independent_groups, &s->g, lost);
	const struct finding *best = NULL;

	if (lost->verdict_class != CW_CLASS_NODE_UNREACHABLE || part == CW_SNAP_NONE)
		return lost;
	for (uint32_t i = 0; i < s->n_findings; i++) {
		const struct finding *f = &s->findings[i];

		/* Stopped members inside a collective do not count. */
		if (f->rank == CW_SNAP_NONE || f->verdict_class == CW_CLASS_IN_COLLECTIVE ||
		    f->detail != CW_DETAIL_STOPPED || t->is_finding_selected[i] ||
		    independent_groups_find(&t->independent_groups, &s->g, f) != part ||
		    !alternatives_same_event(s->snap, lost, f))
			continue;
		if (!best || outranks(s, f, best))
			best = f;
	}
	return best ? best : lost;
}

/* Returns the worst finding that no verdict covers yet; NULL = none is left. */
static const struct finding *next_worst(const struct selection *t)
{
	const struct engine_context *s = &t->s;
	const struct finding *best = NULL;

	for (uint32_t i = 0; i < s->n_findings; i++) {
		const struct finding *f = &s->findings[i];
		uint32_t part = independent_groups_find(&t->independent_groups, &s->g, f);
		bool is_old = f->since_ns &&
			      s->snap->now_ns - f->since_ns >= s->snap->thresholds.window_after_ns;

		if (t->is_finding_selected[i] ||
		    (part != CW_SNAP_NONE && t->is_part_selected[part]))
			continue;
		/* A further trouble must be old enough to matter on its own. */
		if (t->list->n && f->tier <= TIER_FRESH && !is_old)
			continue;
		if (!best || outranks(s, f, best))
			best = f;
	}
	return best ? seen_instead(t, best) : NULL;
}

static int describe(struct selection *t, const struct finding *f, struct cw_arena *a,
		    struct cw_verdict *v)
{
	struct diagnosis diag = {
		.s = &t->s, .groups = &t->independent_groups, .arena = a, .v = v, .main = f
	};
	int r;

	if (f) {
		r = diagnosis_describe(&diag);
		if (r < 0)
			return r;
		certainty_judge(&diag);
	}
	r = certainty_list_wanted(&diag);
	return r < 0 ? r : wording_of_verdict(&diag);
}

/*
 * Appends the verdict on f, unless an earlier verdict blames one of its culprits. f = NULL: the job
 * is healthy.
 */
static int add_verdict(struct selection *t, const struct finding *f)
{
	struct cw_verdict v = { .verdict_class = CW_CLASS_HEALTHY,
				.confidence = CW_CONFIDENCE_CERTAIN,
				.comm = CW_SNAP_NONE };
	bool is_blamed = false;
	int r;

	v.owner = calloc(1, sizeof(struct cw_arena));
	if (!v.owner)
		return -ENOMEM;
	r = describe(t, f, v.owner, &v);
	/* One wrong rank makes wrong calls in all its comms, and we report it once. */
	for (uint32_t i = 0; r == 0 && i < v.n_culprits; i++)
		is_blamed = is_blamed || t->is_blamed[v.culprits[i].rank];
	if (r < 0 || is_blamed) {
		cw_verdict_fini(&v);
		return r;
	}
	for (uint32_t i = 0; i < v.n_culprits; i++)
		t->is_blamed[v.culprits[i].rank] = true;
	t->list->v[t->list->n++] = v;
	return 0;
}

static int look_around(struct engine_context *s)
{
	struct align_scratch scratch = { 0 };
	int r = engine_context_init_places(s);

	s->alignments = cw_arena_new_array(&s->arena, struct alignment, s->snap->n_comms);
	if (r == 0 && !s->alignments)
		r = -ENOMEM;
	for (uint32_t c = 0; r == 0 && c < s->snap->n_comms; c++)
		r = align_comm(s->snap, c, &s->arena, &scratch, &s->alignments[c]);
	align_scratch_fini(&scratch);
	if (r == 0)
		r = cw_waitgraph_build(s->snap, &s->arena, &s->g);
	if (r == 0)
		r = upstream_init(&s->g, &s->arena, &s->up);
	return r == 0 ? culprit_find_all(s) : r;
}

static int investigate(struct selection *t, uint32_t most)
{
	struct engine_context *s = &t->s;
	int r;

	r = look_around(s);
	if (r == 0)
		r = independent_groups_init(s->snap, &s->g, &s->arena, &t->independent_groups);
	if (r == 0)
		r = death_order_mark(s, &t->independent_groups);
	if (r < 0)
		return r;
	t->is_part_selected =
		cw_arena_new_array(&s->arena, bool, (size_t)s->g.n_ranks + s->g.n_gates);
	t->is_finding_selected = cw_arena_new_array(&s->arena, bool, s->n_findings);
	t->is_blamed = cw_arena_new_array(&s->arena, bool, s->snap->n_ranks);
	if (!t->is_part_selected || !t->is_finding_selected || !t->is_blamed)
		return -ENOMEM;
	/*
	 * The limit includes findings that an earlier verdict turns out to cover. It keeps the cost
	 * linear.
	 */
	for (unsigned i = 0; r == 0 && i < 2 * CW_VERDICT_LIST_MAX && t->list->n < most; i++) {
		const struct finding *f = next_worst(t);
		uint32_t part;

		if (!f && t->list->n)
			break;
		r = add_verdict(t, f);
		if (!f)
			continue;
		t->is_finding_selected[f - s->findings] = true;
		part = independent_groups_find(&t->independent_groups, &s->g, f);
		if (part != CW_SNAP_NONE)
			t->is_part_selected[part] = true;
	}
	return r;
}

static int compute(const struct cw_snapshot *snap, uint32_t most, struct cw_verdict_list *ret)
{
	struct cw_verdict_list list = { .n = 0 };
	struct selection t = { .s = { .snap = snap }, .list = &list };
	int r;

	r = investigate(&t, most);
	cw_arena_fini(&t.s.arena);
	if (r < 0)
		cw_verdict_list_fini(&list);
	else
		*ret = list;
	return r;
}

int cw_verdict_compute_all(const struct cw_snapshot *snap, struct cw_verdict_list *ret)
{
	return compute(snap, CW_VERDICT_LIST_MAX, ret);
}

int cw_verdict_compute(const struct cw_snapshot *snap, struct cw_verdict *ret)
{
	struct cw_verdict_list list;
	int r;

	r = compute(snap, 1, &list);
	if (r == 0)
		*ret = list.v[0];
	return r;
}
