/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/consequence.h"

#include <errno.h>

#include "analysis/align/call_step.h"
#include "analysis/culprit/certainty.h"
#include "model/death.h"

/* Wrong numbers come out at the next check of them: a step or two later. */
#define COMES_WITHIN_NS (INT64_C(60) * 1000000000)
#define COMES_WITHIN_CALLS 256u
/* A shell's codes for signals begin here. */
#define MAX_OWN_EXIT 128

/* Nobody else ended it, and it had not waited for anybody too long. */
static bool ended_by_itself(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	const struct cw_ending end = { .liveness = r->liveness,
				       .exit_code = r->exit_code,
				       .term_signal = r->term_signal };

	/* Others that its launcher asked to end do not make it one of them. */
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

/* The first of all; CW_SNAP_NONE = nobody has ended. */
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

/* When the call was made, first and last; 0 = not known. */
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
 * What a recovery calls once somebody has died differs because of the death. Where only the hashes
 * of the calls tell so far, the calls themselves are on their way.
 */
static bool was_made_before(const struct engine_context *s, uint32_t comm, int64_t ended_ns)
{
	const struct cw_snap_comm *c = &s->snap->comms[comm];
	const struct alignment *al = &s->alignments[comm];
	struct instants t = { .seq = al->seq };

	if (!al->knows_call)
		return certainty_lacks_calls(s->snap, comm, &al->hashes);
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank != CW_SNAP_NONE)
			(void)call_step_visit_all(&c->members[m], m, note_instant, &t);
	return t.first_ns && t.last_ns <= ended_ns && ended_ns - t.first_ns <= COMES_WITHIN_NS;
}

/* All members had entered it, the one that ended not much later than that. */
static bool all_entered(const struct engine_context *s, uint32_t comm, uint32_t ended)
{
	const struct cw_snap_comm *c = &s->snap->comms[comm];
	const struct alignment *al = &s->alignments[comm];
	/* Where only hashes tell, some may be further than those that have ended. */
	uint64_t seq = al->knows_call ? al->seq : al->after_seq + 1;

	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank == CW_SNAP_NONE ||
		    !(c->members[m].known & CW_KNOWN_ENTERED) || c->members[m].coll_entered < seq)
			return false;
	return c->members[engine_context_comm_rank(s, comm, ended)].coll_entered - seq <=
	       COMES_WITHIN_CALLS;
}

/* A call at which all have come is held up by those that differ, whoever ended since. */
static bool is_open_to_deaths(const struct engine_context *s, const struct finding *f)
{
	return f->verdict_class == CW_CLASS_MISMATCH && !f->setup && f->is_proof &&
	       (f->gate == CW_SNAP_NONE || s->g.gates[f->gate].n_missing_all);
}

static bool comes_of(const struct engine_context *s, const struct finding *f, uint32_t first)
{
	return is_open_to_deaths(s, f) &&
	       engine_context_comm_rank(s, f->comm, first) != CW_SNAP_NONE &&
	       all_entered(s, f->comm, first) &&
	       was_made_before(s, f->comm, s->snap->ranks[first].ended_ns);
}

/* The oldest wait for a member that has ended; each of these is marked. CW_SNAP_NONE = none. */
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

static void drop_deaths(struct engine_context *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_findings; i++) {
		const struct finding *f = &s->findings[i];

		if (f->verdict_class != CW_CLASS_PROCESS_DEAD || !s->ended_after[f->rank])
			s->findings[n++] = *f;
	}
	s->n_findings = n;
}

int consequence_join(struct engine_context *s)
{
	uint32_t first = find_first(s), gate = CW_SNAP_NONE;

	if (first == CW_SNAP_NONE || !ended_by_itself(s, first))
		return 0;
	s->ended_after = cw_arena_new_array(&s->arena, uint32_t, s->snap->n_ranks);
	if (!s->ended_after)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_findings && gate == CW_SNAP_NONE; i++) {
		struct finding *f = &s->findings[i];

		if (!comes_of(s, f, first))
			continue;
		f->ended = &s->snap->ranks[first];
		gate = mark_ended(s, f);
		if (gate == CW_SNAP_NONE) /* nobody is left to wait */
			continue;
		f->gate = gate;
		f->since_ns = s->g.gates[gate].since_ns;
		f->tier = TIER_PROOF;
	}
	drop_deaths(s);
	return 0;
}
