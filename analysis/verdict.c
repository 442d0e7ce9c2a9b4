/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a snapshot to one sentence about one rank.
 *
 * 1. Did everybody make the same calls? Each comm is aligned by coll_seq, and the first call in
 *    which two members differ is noted (align.h). That is true for ever, however long anybody
 * waits.
 * 2. Who waits for whom? Ranks wait at gates, held shut by the members that have not come
 *    (waitgraph.h). The majority of a hang's ranks are in there, and none of them is to blame.
 * 3. Where does the waiting end? At a rank that waits for nobody, at a gate that does not open
 *    though everybody has come, or in a cycle. Each end gets a class by what is known about it
 *    (culprit.c).
 * 4. Which end matters? Proof before patience, stuck before slow, old before young. In a healthy
 *    job there are ends too: a straggler is one for some milliseconds.
 * 5. Who is concerned? Everybody upstream of the end is a victim. Other ends that the same victims
 *    wait for are accomplices, if of the same class, else other possible answers (incident.c).
 * 6. How sure is that (certainty.c), and how would one say it (wording.c)?
 */
#include "analysis/verdict.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/certainty.h"
#include "analysis/incident.h"
#include "analysis/scene.h"
#include "analysis/wording.h"
#include "common/signature.h"

static int align_all(struct scene *s)
{
	struct align_scratch scratch = { 0 };
	int r = 0;

	s->alignments = arena_new_array(&s->arena, struct alignment, s->snap->n_comms);
	if (!s->alignments)
		return -ENOMEM;
	for (uint32_t c = 0; r == 0 && c < s->snap->n_comms; c++)
		r = align_comm(s->snap, c, &s->arena, &scratch, &s->alignments[c]);
	align_scratch_fini(&scratch);
	return r;
}

/* True where a matters more than b. */
static bool outranks(const struct scene *s, const struct finding *a, const struct finding *b)
{
	if (a->tier != b->tier)
		return a->tier > b->tier;
	/* 0 means unknown, and may be anything. */
	if (a->since_ns != b->since_ns)
		return a->since_ns && (!b->since_ns || a->since_ns < b->since_ns);
	if (a->klass != b->klass)
		return a->klass < b->klass;
	if (a->rank != b->rank && a->rank != CW_SNAP_NONE && b->rank != CW_SNAP_NONE)
		return s->snap->ranks[a->rank].rank < s->snap->ranks[b->rank].rank;
	return false;
}

static const struct finding *worst(const struct scene *s)
{
	const struct finding *best = NULL;

	for (uint32_t i = 0; i < s->n_findings; i++)
		if (!best || outranks(s, &s->findings[i], best))
			best = &s->findings[i];
	return best;
}

static int investigate(struct scene *s, struct arena *a, struct cw_verdict *v)
{
	struct incident inc = { .s = s, .arena = a, .v = v };
	int r;

	r = align_all(s);
	if (r == 0)
		r = waitgraph_build(s->snap, &s->arena, &s->g);
	if (r == 0)
		r = upstream_init(&s->g, &s->arena, &s->up);
	if (r == 0)
		r = culprit_find_all(s);
	if (r < 0)
		return r;
	inc.main = worst(s);
	if (inc.main) {
		r = incident_describe(&inc);
		if (r < 0)
			return r;
		certainty_judge(&inc);
	}
	r = certainty_list_wanted(&inc);
	return r < 0 ? r : wording_of_verdict(&inc);
}

int cw_verdict_compute(const struct cw_snapshot *snap, struct cw_verdict *ret)
{
	struct cw_verdict v = { .klass = CW_CLASS_HEALTHY,
				.detail = "",
				.confidence = CW_CONFIDENCE_CERTAIN,
				.comm = CW_SNAP_NONE };
	struct scene s = { .snap = snap };
	struct arena *owner = calloc(1, sizeof(*owner));
	int r;

	if (!owner)
		return -ENOMEM;
	r = investigate(&s, owner, &v);
	arena_fini(&s.arena);
	if (r < 0) {
		arena_fini(owner);
		free(owner);
		return r;
	}
	v.owner = owner;
	*ret = v;
	return 0;
}

void cw_verdict_fini(struct cw_verdict *v)
{
	if (v->owner)
		arena_fini(v->owner);
	free(v->owner);
	*v = (struct cw_verdict){ 0 };
}

/*
 * Point-to-point and host calls have no coll_seq: the op waited in tells them apart. Its local
 * numbers (op_index, group) differ between ranks and are left out.
 */
uint64_t cw_verdict_key(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	bool is_silent = v->klass == CW_CLASS_MISMATCH && !v->waiting_since_ns;
	const struct cw_snap_comm *c;
	uint64_t h;

	if (v->klass == CW_CLASS_HEALTHY || v->comm >= snap->n_comms)
		return 0;
	c = &snap->comms[v->comm];
	h = cw_hash_step(CW_HASH_INIT, c->id);
	h = cw_hash_step(h, c->instance);
	h = cw_hash_step(h, is_silent && c->differ_seq ? c->differ_seq : v->coll_seq);
	h = cw_hash_step(h, v->waiting_since_ns != 0);
	if (!v->coll_seq && v->n_sides) {
		h = cw_hash_step(h, v->sides[0].op.kind);
		h = cw_hash_step(h, v->sides[0].op.p2p_seq);
	}
	return h ? h : 1;
}
