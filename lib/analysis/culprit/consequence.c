/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/consequence.h"

#include <errno.h>

#include "analysis/align/call_step.h"
#include "analysis/culprit/certainty.h"
#include "model/death.h"

/*
 * Limits between a wrong call and a death that it causes. A program notices wrong numbers at its
 * next check, a step or two later.
 */
#define COMES_WITHIN_NS (INT64_C(60) * 1000000000)
#define COMES_WITHIN_CALLS 256u
/*
 * The highest exit code that a program chooses itself. Higher codes are a shell's codes for
 * signals.
 */
#define MAX_OWN_EXIT 128

/*
 * True if the rank ended by itself: no other process ended it, and it had not given up after a long
 * wait.
 */
static bool ended_by_itself(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	const struct cw_ending end = { .liveness = r->liveness,
				       .exit_code = r->exit_code,
				       .term_signal = r->term_signal };

	/*
	 * The first failure stays the rank's own, even if its launcher then also asked the rank to
	 * end.
	 */
	if (r->flags & CW_RANKF_OOM_KILLED ||
	    (r->flags & CW_RANKF_SHUTDOWN && rank != s->failed_first) ||
	    (s->has_given_up && s->has_given_up[rank]))
		return false;
	if (r->end_by == CW_END_BY_PROCESS || r->end_by == CW_END_BY_OUTSIDE ||
	    r->end_by == CW_END_BY_PARENT || r->end_by == CW_END_BY_INIT)
		return false;
	if (r->liveness == CW_LIVE_EXITED)
		return r->exit_code > 0 && r->exit_code <= MAX_OWN_EXIT;
	return cw_ending_is_fault(&end);
}

/* Returns the rank that ended first; CW_SNAP_NONE = no rank has ended. */
static uint32_t find_first(const struct engine_context *s)
{
	const struct cw_snapshot *snap = s->snap;
	uint32_t first = CW_SNAP_NONE;

	if (s->failed_first != CW_SNAP_NONE)
		return s->failed_first;
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (cw_liveness_is_dead(snap->ranks[i].liveness) && snap->ranks[i].ended_ns &&
		    (first == CW_SNAP_NONE ||
		     snap->ranks[i].ended_ns < snap->ranks[first].ended_ns))
			first = i;
	return first;
}

/* The times at which the first and the last member made the call; 0 = not known. */
struct instants {
	uint64_t seq;
	int64_t first_ns, last_ns;
};

static int note_instant(void *userdata, uint32_t member, const struct call_step *step)
{
	struct instants *t = userdata;

	(void)member;
	if (step->seq != t->seq || !step->op->enter_ns)
		return 0;
	if (!t->first_ns || step->op->enter_ns < t->first_ns)
		t->first_ns = step->op->enter_ns;
	if (step->op->enter_ns > t->last_ns)
		t->last_ns = step->op->enter_ns;
	return 0;
}

/*
 * True if the death of rank `ended` may follow from finding f, a call that differs. Two conditions
 * must hold: all members entered that call before the death, and the death came soon after the
 * call. A recovery after a death also makes calls that differ, but then the death is the cause. A
 * call that all members have entered and that does not complete is blocked by the differing call.
 * No death explains this wait.
 */
static bool may_explain(const struct engine_context *s, const struct finding *f, uint32_t ended)
{
	int64_t ended_ns = s->snap->ranks[ended].ended_ns;
	const struct cw_snap_comm *c;
	const struct alignment *al;
	struct instants t = { 0 };
	uint32_t place;
	uint64_t seq;

	if (f->verdict_class != CW_CLASS_MISMATCH || f->setup || !f->is_proof ||
	    (f->gate != CW_SNAP_NONE && !s->g.gates[f->gate].n_missing_all))
		return false;
	place = engine_context_comm_rank(s, f->comm, ended);
	if (place == CW_SNAP_NONE)
		return false;
	c = &s->snap->comms[f->comm];
	al = &s->alignments[f->comm];
	/* If only hashes show the difference, some members may be further than the dead rank. */
	seq = al->knows_call ? al->seq : al->after_seq + 1;
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank == CW_SNAP_NONE ||
		    !(c->members[m].known & CW_KNOWN_ENTERED) || c->members[m].coll_entered < seq)
			return false;
	if (c->members[place].coll_entered - seq > COMES_WITHIN_CALLS)
		return false;
	/* While we know only the hashes, the windows with the calls may still be on their way. */
	if (!al->knows_call)
		return certainty_lacks_calls(s->snap, f->comm, &al->hashes);
	t.seq = al->seq;
	for (uint32_t m = 0; m < c->nranks; m++)
		(void)call_step_visit_all(&c->members[m], m, note_instant, &t);
	return t.first_ns && t.last_ns <= ended_ns && ended_ns - t.first_ns <= COMES_WITHIN_NS;
}

/*
 * Marks the missing members that have ended. Returns the gate with the oldest wait for such a
 * member; CW_SNAP_NONE = no rank waits for one.
 */
static uint32_t mark_ended(struct engine_context *s, const struct finding *f)
{
	const struct cw_snap_comm *c = &s->snap->comms[f->comm];
	uint32_t oldest = CW_SNAP_NONE;

	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t rank = c->members[m].rank, gate;

		if (rank == CW_SNAP_NONE || !cw_liveness_is_dead(s->snap->ranks[rank].liveness) ||
		    !waitgraph_is_missing(&s->g, rank) || waitgraph_waits(&s->g, rank))
			continue;
		s->ended_after[rank] = f->comm + 1;
		gate = engine_context_gate_of(s, rank);
		if (oldest == CW_SNAP_NONE ||
		    s->g.gates[gate].since_ns < s->g.gates[oldest].since_ns)
			oldest = gate;
	}
	return oldest;
}

/*
 * Finds the differing call that may explain the job's first death. The finding of this call gets
 * the waits for all members of its comm that ended. We drop the findings of these deaths.
 */
int consequence_join(struct engine_context *s)
{
	uint32_t first = find_first(s), gate = CW_SNAP_NONE, n = 0;

	if (first == CW_SNAP_NONE || !ended_by_itself(s, first))
		return 0;
	s->ended_after = cw_arena_new_array(&s->arena, uint32_t, s->snap->n_ranks);
	if (!s->ended_after)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_findings && gate == CW_SNAP_NONE; i++) {
		struct finding *f = &s->findings[i];

		if (!may_explain(s, f, first))
			continue;
		f->ended = &s->snap->ranks[first];
		gate = mark_ended(s, f);
		if (gate == CW_SNAP_NONE) /* no rank is left to wait */
			continue;
		f->gate = gate;
		f->since_ns = s->g.gates[gate].since_ns;
		f->tier = TIER_PROOF;
	}
	for (uint32_t i = 0; i < s->n_findings; i++) {
		const struct finding *f = &s->findings[i];

		if (f->verdict_class != CW_CLASS_PROCESS_DEAD || !s->ended_after[f->rank])
			s->findings[n++] = *f;
	}
	s->n_findings = n;
	return 0;
}
