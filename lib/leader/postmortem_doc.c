/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every list of the post-mortem has a limit, independent of the size of the job. We list the
 * earliest ends one by one, and group all ends by kind. We list open calls by communicator and
 * number, and the last calls of relevant ranks only. Texts come from foreign processes, and the
 * printer escapes them.
 */
#include "leader/postmortem_doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "model/cause.h"
#include "model/rankset.h"
#include "report/doc/facts_builder.h"
#include "report/doc/incident_facts.h"
#include "say/english.h"

#define RANKS_BYTES 256

static const struct cw_snap_rank *rank_of(const struct cw_postmortem_facts *facts, uint32_t i)
{
	return &facts->input->snap->ranks[i];
}

static const char *node_of(const struct cw_postmortem_facts *facts, uint32_t i)
{
	return facts->input->snap->nodes[rank_of(facts, i)->node].name;
}

static int64_t first_ns(const struct cw_postmortem_facts *facts)
{
	return facts->first->n_failed ? facts->deaths[facts->first->earliest].ended_ns : 0;
}

/* True if the document names a first death. In a cancelled job no rank is to blame. */
static bool has_first(const struct cw_postmortem_facts *facts)
{
	return facts->first->n_first && facts->first->outcome == CW_POSTMORTEM_FAILED;
}

static bool is_dead(const struct cw_postmortem_facts *facts, uint32_t i)
{
	return cw_liveness_is_dead(facts->deaths[i].liveness);
}

/* Returns the number of culprits that the wait lists. */
static uint32_t n_culprits(const struct cw_postmortem_wait *w)
{
	return w->n_culprits < CW_POSTMORTEM_MAX_CULPRITS ? w->n_culprits
							  : CW_POSTMORTEM_MAX_CULPRITS;
}

static double seconds(int64_t ns)
{
	/* We state times to one millisecond. */
	return (double)(ns / CW_NS_PER_MS) / 1e3;
}

/* Converts an instant to wall time; 0 = unknown. */
static int64_t wall_ns(const struct cw_postmortem_facts *facts, int64_t ns)
{
	const struct cw_snapshot *snap = facts->input->snap;

	return ns && snap->wall_ns ? snap->wall_ns - (snap->now_ns - ns) : 0;
}

/* ---- sets of ranks ---- */

struct picked {
	int32_t *v;
	uint32_t n;
};

static void free_picked(struct picked *p)
{
	free(p->v);
}

/* Collects the ranks for which is() returns true. */
static struct picked pick(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
			  bool (*is)(const struct cw_postmortem_facts *facts, uint32_t i,
				     const void *arg),
			  const void *arg)
{
	uint32_t n = facts->input->snap->n_ranks;
	struct picked p = { .v = calloc((size_t)n + 1, sizeof(*p.v)) };

	b->bad |= p.v ? 0 : -1;
	for (uint32_t i = 0; p.v && i < n; i++)
		if (is(facts, i, arg))
			p.v[p.n++] = rank_of(facts, i)->rank;
	return p;
}

/* Formats "rank 3" or "ranks 0-3,7". If no rank number is known, formats the number of ranks. */
static void say_ranks(const int32_t *ranks, uint32_t n, char *buf, size_t len)
{
	char set[RANKS_BYTES];

	if (*cw_rankset_format(ranks, n, set, sizeof(set)))
		(void)snprintf(buf, len, "rank%s %s", n == 1 ? "" : "s", set);
	else
		(void)snprintf(buf, len, "%u process%s", n, n == 1 ? "" : "es");
}

/* ---- ends ---- */

/* The key for sorting ranks by the time of their end. Living ranks come last. */
struct by_time {
	int64_t ended_ns;
	uint32_t rank;
};

static int by_time(const void *pa, const void *pb)
{
	const struct by_time *a = pa, *b = pb;

	if (a->ended_ns != b->ended_ns)
		return a->ended_ns < b->ended_ns ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static const char *how_of(struct cw_facts_builder *b, const struct cw_postmortem_death *death)
{
	char how[96];

	cw_postmortem_format_end(death, how, sizeof(how));
	return cw_facts_text(b, how);
}

static void add_end(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		    uint32_t index, struct cw_incident_end *to)
{
	static const char *const kinds[] = {
		[CW_POSTMORTEM_OWN] = "own",           [CW_POSTMORTEM_KILLED] = "killed",
		[CW_POSTMORTEM_REACTION] = "reaction", [CW_POSTMORTEM_ASKED] = "asked",
		[CW_POSTMORTEM_NO_FAILURE] = "none",   [CW_POSTMORTEM_ALIVE] = "alive",
	};
	const struct cw_postmortem_death *death = &facts->deaths[index];
	const struct cw_snap_rank *rank = rank_of(facts, index);
	int64_t ended_wall_ns = wall_ns(facts, death->ended_ns);

	*to = (struct cw_incident_end){
		.rank = rank->rank,
		.host = node_of(facts, index),
		.how = how_of(b, death),
		.kind = kinds[cw_postmortem_kind(death)],
		.cause = rank->cause,
		.cause_kind = cw_facts_named(rank->cause_kind, cw_cause_kind_name),
		.cause_by = cw_facts_named(rank->cause_by, cw_end_by_name),
		.is_first = facts->is_first[index],
		.ended_wall_ns = ended_wall_ns,
		.ended_ns = ended_wall_ns > 0 ? (uint64_t)ended_wall_ns : 0,
		.after_s = death->ended_ns && facts->first->n_failed
				   ? seconds(death->ended_ns - first_ns(facts))
				   : 0,
		.unsure_s = seconds(death->unsure_ns),
	};
	CW_INCIDENT_PLACE_FACTS(CW_FACTS_COPY)
	CW_INCIDENT_POD_FACTS(CW_FACTS_COPY)
}

static void add_ends(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		     struct cw_incident_facts *to)
{
	uint32_t n = facts->input->snap->n_ranks,
		 listed = n < CW_POSTMORTEM_DOC_MAX_ENDS ? n : CW_POSTMORTEM_DOC_MAX_ENDS;
	struct by_time *order = cw_facts_list(b, struct by_time, n);

	to->ends = cw_facts_list(b, struct cw_incident_end, listed);
	to->ends_omitted = n - listed;
	if (!order || !to->ends)
		return;
	for (uint32_t i = 0; i < n; i++)
		order[i] =
			(struct by_time){ is_dead(facts, i) ? facts->deaths[i].ended_ns : INT64_MAX,
					  i };
	qsort(order, n, sizeof(*order), by_time);
	while (to->n_ends < listed) {
		add_end(b, facts, order[to->n_ends].rank, &to->ends[to->n_ends]);
		to->n_ends++;
	}
}

static bool ended_alike(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	const struct cw_postmortem_death *a = &facts->deaths[i], *b = arg;

	return a->liveness == b->liveness && a->exit_code == b->exit_code &&
	       a->term_signal == b->term_signal && a->is_oom_killed == b->is_oom_killed;
}

/* True if rank i ended in another way than the first rank of each earlier group. */
static bool is_new_group(const struct cw_postmortem_facts *facts, const uint32_t *heads, uint32_t n,
			 uint32_t i)
{
	for (uint32_t k = 0; k < n; k++)
		if (ended_alike(facts, i, &facts->deaths[heads[k]]))
			return false;
	return true;
}

static void add_ended(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		      struct cw_incident_facts *to)
{
	uint32_t heads[CW_POSTMORTEM_DOC_MAX_GROUPS], n = facts->input->snap->n_ranks;

	to->ended = cw_facts_list(b, struct cw_incident_ended, CW_POSTMORTEM_DOC_MAX_GROUPS);
	to->ended_otherwise = n;
	for (uint32_t i = 0; to->ended && i < n && to->n_ended < CW_POSTMORTEM_DOC_MAX_GROUPS;
	     i++) {
		_cleanup_(free_picked) struct picked p = { 0 };

		if (!is_new_group(facts, heads, to->n_ended, i))
			continue;
		p = pick(b, facts, ended_alike, &facts->deaths[i]);
		heads[to->n_ended] = i;
		to->ended[to->n_ended++] = (struct cw_incident_ended){
			.ranks = cw_facts_set(b, p.v, p.n),
			.count = p.n,
			.how = how_of(b, &facts->deaths[i]),
		};
		to->ended_otherwise -= p.n;
	}
}

/* ---- the first death ---- */

static bool is_first(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	(void)arg; /* pick() passes it */
	return facts->is_first[i];
}

static struct cw_incident_first *first_of(struct cw_facts_builder *b,
					  const struct cw_postmortem_facts *facts)
{
	_cleanup_(free_picked) struct picked p = pick(b, facts, is_first, NULL);
	struct cw_incident_first *first =
		has_first(facts) ? cw_facts_one(b, struct cw_incident_first) : NULL;

	if (first)
		*first = (struct cw_incident_first){
			.ranks = cw_facts_set(b, p.v, p.n),
			.count = p.n,
			.by = cw_facts_named(facts->first->reason, cw_first_reason_name),
			.together = facts->first->n_together,
			.margin_s = seconds(facts->first->margin_ns),
		};
	return first;
}

/* ---- the last wait ---- */

static struct cw_incident_last_wait *last_wait(struct cw_facts_builder *b,
					       const struct cw_postmortem_facts *facts)
{
	const struct cw_postmortem_memory *m = facts->input->memory;
	const struct cw_postmortem_wait *w = m ? &m->before : NULL;
	struct cw_incident_last_wait *wait =
		w && w->since_ns ? cw_facts_one(b, struct cw_incident_last_wait) : NULL;
	int64_t until = facts->first->n_failed ? first_ns(facts) : facts->input->snap->now_ns;

	if (wait)
		*wait = (struct cw_incident_last_wait){
			.verdict_class = cw_facts_named(w->verdict_class, cw_class_name),
			.detail = cw_facts_named(w->detail, cw_detail_name),
			.confidence = cw_facts_named(w->confidence, cw_confidence_name),
			.ranks = cw_facts_set(b, w->culprits, n_culprits(w)),
			.count = w->n_culprits,
			.for_s = until > w->since_ns ? seconds(until - w->since_ns) : 0,
			.summary = w->summary,
		};
	return wait;
}

/* ---- calls ---- */

static struct cw_incident_last_call call_of(const struct cw_postmortem_facts *facts,
					    const struct cw_snap_comm *comm, const struct cw_op *op)
{
	return (struct cw_incident_last_call){
		.comm = comm->id,
		.comm_name = comm->name ? comm->name : "",
		.kind = cw_facts_named(op->kind, cw_op_kind_name),
		.coll_seq = op->coll_seq,
		.dtype = cw_facts_named(op->dtype, cw_dtype_name),
		.count = op->count,
		.is_done = op->progress == CW_PROGRESS_COMPLETED,
		.entered_wall_ns = wall_ns(facts, op->enter_ns),
	};
}

static bool is_same_call(const struct cw_op *a, const struct cw_op *b)
{
	return a->kind == b->kind && a->coll_seq == b->coll_seq && a->p2p_seq == b->p2p_seq;
}

/* Adds the members of a communicator whose oldest open call equals the one of `head`. */
static void add_open(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		     const struct cw_snap_comm *comm, uint32_t head,
		     struct cw_incident_open_call *to)
{
	_cleanup_(freep) int32_t *ranks = calloc((size_t)comm->nranks + 1, sizeof(*ranks));
	const struct cw_op *op = comm->members[head].pending;
	uint32_t n = 0;

	for (uint32_t m = head; ranks && m < comm->nranks; m++)
		if (comm->members[m].rank != CW_SNAP_NONE && comm->members[m].pending &&
		    is_same_call(comm->members[m].pending, op))
			ranks[n++] = rank_of(facts, comm->members[m].rank)->rank;
	b->bad |= ranks ? 0 : -1;
	to->ranks = cw_facts_set(b, ranks, n);
	to->members = n;
	to->op = cw_facts_one(b, struct cw_incident_last_call);
	if (to->op)
		*to->op = call_of(facts, comm, op);
}

static bool is_new_call(const struct cw_snap_comm *comm, uint32_t m)
{
	for (uint32_t k = 0; k < m; k++)
		if (comm->members[k].rank != CW_SNAP_NONE && comm->members[k].pending &&
		    is_same_call(comm->members[k].pending, comm->members[m].pending))
			return false;
	return true;
}

/*
 * The maximum number of members of a communicator that we compare with each other. The cost grows
 * with the square of this number.
 */
#define MAX_COMPARED 1024u

static void add_all_open(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
			 struct cw_incident_facts *to)
{
	const struct cw_snapshot *snap = facts->input->snap;

	to->open = cw_facts_list(b, struct cw_incident_open_call, CW_POSTMORTEM_DOC_MAX_OPEN);
	for (uint32_t c = 0; to->open && c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c];

		for (uint32_t m = 0; m < comm->nranks && m < MAX_COMPARED; m++) {
			if (comm->members[m].rank == CW_SNAP_NONE || !comm->members[m].pending ||
			    !is_new_call(comm, m))
				continue;
			if (to->n_open == CW_POSTMORTEM_DOC_MAX_OPEN)
				return;
			add_open(b, facts, comm, m, &to->open[to->n_open++]);
		}
	}
}

static bool matters(const struct cw_postmortem_facts *facts, uint32_t i)
{
	const struct cw_postmortem_memory *m = facts->input->memory;

	if (facts->is_first[i])
		return true;
	for (uint32_t k = 0; m && m->before.since_ns && k < n_culprits(&m->before); k++)
		if (m->before.culprits[k] == rank_of(facts, i)->rank)
			return true;
	return false;
}

/*
 * Adds the newest calls of a rank on one communicator, the oldest first. The calls come from the
 * rank's window. Without a window, we add only the last call.
 */
static void add_calls(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		      const struct cw_snap_comm *comm, const struct cw_snap_member *m,
		      struct cw_incident_last_calls *to)
{
	uint32_t from = m->n_window > CW_POSTMORTEM_DOC_MAX_OPS
				? m->n_window - CW_POSTMORTEM_DOC_MAX_OPS
				: 0;

	*to = (struct cw_incident_last_calls){
		.rank = rank_of(facts, m->rank)->rank,
		.comm_name = comm->name ? comm->name : "",
		.entered = m->coll_entered,
		.calls = cw_facts_list(b, struct cw_incident_last_call, CW_POSTMORTEM_DOC_MAX_OPS),
	};
	for (uint32_t i = from; to->calls && m->window && i < m->n_window; i++)
		to->calls[to->n_calls++] = call_of(facts, comm, &m->window[i]);
	if (to->calls && !m->window && m->last)
		to->calls[to->n_calls++] = call_of(facts, comm, m->last);
}

static void add_last_calls(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
			   struct cw_incident_facts *to)
{
	const struct cw_snapshot *snap = facts->input->snap;

	to->last_calls =
		cw_facts_list(b, struct cw_incident_last_calls, CW_POSTMORTEM_DOC_MAX_LAST);
	for (uint32_t c = 0; to->last_calls && c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank == CW_SNAP_NONE || !matters(facts, member->rank) ||
			    (!member->last && !member->window))
				continue;
			if (to->n_last_calls == CW_POSTMORTEM_DOC_MAX_LAST)
				return;
			add_calls(b, facts, &snap->comms[c], member,
				  &to->last_calls[to->n_last_calls++]);
		}
}

static void add_wrong_data(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
			   struct cw_incident_facts *to)
{
	const struct cw_verdict_list *v = facts->input->list;

	to->wrong_data = cw_facts_list(b, struct cw_incident_sentence, v ? v->n : 0);
	for (uint32_t i = 0; to->wrong_data && v && i < v->n; i++)
		if (cw_postmortem_is_wrong_data(&v->v[i]) && !(facts->input->alerted & 1u << i))
			to->wrong_data[to->n_wrong_data++] =
				cw_facts_sentence(b, &v->v[i].said, CW_VERDICT_TEXT_MAX);
}

/* ---- unknown facts ---- */

static void note(struct cw_facts_builder *b, struct cw_incident_facts *to, const char *text)
{
	if (to->end_notes && to->n_end_notes < CW_POSTMORTEM_DOC_MAX_NOTES)
		to->end_notes[to->n_end_notes++] = cw_facts_text(b, text);
}

static bool lacks_kernel(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	(void)arg; /* pick() passes it */
	return is_dead(facts, i) && facts->deaths[i].end_by == CW_END_BY_UNKNOWN;
}

static bool has_outside_sender(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	(void)arg; /* pick() passes it */
	return is_dead(facts, i) && facts->deaths[i].end_by == CW_END_BY_OUTSIDE;
}

static bool has_unknown_clock(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	(void)arg; /* pick() passes it */
	return is_dead(facts, i) && facts->deaths[i].unsure_ns >= CW_POSTMORTEM_UNKNOWN_NS;
}

static bool is_not_known_dead(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	(void)arg; /* pick() passes it */
	return !is_dead(facts, i);
}

static void note_ranks(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		       struct cw_incident_facts *to,
		       bool (*is)(const struct cw_postmortem_facts *facts, uint32_t i,
				  const void *arg),
		       const char *what)
{
	_cleanup_(free_picked) struct picked p = pick(b, facts, is, NULL);
	char ranks[RANKS_BYTES + 16], text[RANKS_BYTES + 256];

	if (!p.n)
		return;
	say_ranks(p.v, p.n, ranks, sizeof(ranks));
	(void)snprintf(text, sizeof(text), "%s: %s", ranks, what);
	note(b, to, text);
}

static void add_notes(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		      struct cw_incident_facts *to)
{
	const struct cw_snapshot *snap = facts->input->snap;

	to->end_notes = cw_facts_list(b, const char *, CW_POSTMORTEM_DOC_MAX_NOTES);
	note_ranks(b, facts, to, is_not_known_dead,
		   "the way they ended is not known, because their node does not report");
	note_ranks(b, facts, to, lacks_kernel,
		   "no kernel evidence (BPF): senders of signals are not known");
	note_ranks(b, facts, to, has_outside_sender,
		   "the signal came from outside of the daemon's pid namespace: its sender is not "
		   "known here");
	note_ranks(b, facts, to, has_unknown_clock,
		   "their node's clock was measured too rarely to order their ends exactly");
	if (!facts->input->memory)
		note(b, to,
		     "this leader did not see the job just before the deaths, so the waits are not "
		     "known");
	for (uint32_t i = 0; i < snap->n_notes; i++)
		note(b, to, snap->notes[i]);
}

/* ---- summary ---- */

static uint32_t n_dead(const struct cw_postmortem_facts *facts)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < facts->input->snap->n_ranks; i++)
		n += is_dead(facts, i);
	return n;
}

static int64_t last_ns(const struct cw_postmortem_facts *facts)
{
	int64_t last = 0;

	for (uint32_t i = 0; i < facts->input->snap->n_ranks; i++)
		if (is_dead(facts, i) && facts->deaths[i].ended_ns > last)
			last = facts->deaths[i].ended_ns;
	return last;
}

/* True if we know all expected ranks of the job, and all of them have ended. */
static bool is_all_known(const struct cw_postmortem_facts *facts)
{
	const struct cw_snapshot *snap = facts->input->snap;

	return n_dead(facts) == snap->n_ranks && snap->n_ranks >= snap->ranks_expected;
}

static const char *first_verb(const struct cw_postmortem_facts *facts)
{
	if (facts->first->reason == CW_FIRST_BY_CAUSE)
		return "was the first to fail";
	if (facts->blamed)
		return "ended first";
	if (facts->first->reason == CW_FIRST_BY_TIME)
		return "was the first to fail";
	return is_all_known(facts) ? "alone failed" : "failed";
}

static void say_first(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		      char *buf, size_t len)
{
	_cleanup_(free_picked) struct picked p = pick(b, facts, is_first, NULL);
	const struct cw_snap_rank *r;
	uint32_t i = 0;
	char ranks[RANKS_BYTES + 16], how[96];

	while (!facts->is_first[i])
		i++;
	r = rank_of(facts, i);
	say_ranks(p.v, p.n, ranks, sizeof(ranks));
	if (facts->first->reason == CW_FIRST_TIE)
		cw_text_append(
			buf, len,
			"%s ended too close together to tell which was first; rank %d on %s: ",
			ranks, r->rank, node_of(facts, i));
	else
		cw_text_append(buf, len, "%s%s on %s %s: ", p.n > 1 ? "the process of " : "", ranks,
			       node_of(facts, i), first_verb(facts));
	/* We use the kernel's facts if there are any. */
	cw_postmortem_format_end(&facts->deaths[i], how, sizeof(how));
	cw_text_append(buf, len, "it %s%s", cw_cause_verb(r->cause_kind, r->cause_by),
		       r->cause && *r->cause ? r->cause : how);
	if (facts->first->reason == CW_FIRST_BY_CAUSE)
		cw_text_append(buf, len,
			       ", which can explain the end of %u other%s at the same time",
			       facts->first->n_together - facts->first->n_first,
			       facts->first->n_together - facts->first->n_first == 1 ? "" : "s");
}

static void say_blamed(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		       char *buf, size_t len)
{
	const struct cw_postmortem_wait *w = facts->blamed;
	int n = (int)strlen(w->summary);

	/* We drop the full stop, because the sentence continues. */
	if (n && w->summary[n - 1] == '.')
		n--;
	if (w->since_ns)
		cw_text_append(buf, len, "the job ended after %.0f s of waiting: ",
			       seconds(first_ns(facts) - w->since_ns));
	cw_text_append(buf, len, "%.*s; ", n, w->summary);
	say_first(b, facts, buf, len);
}

static enum cw_class class_of(const struct cw_postmortem_facts *facts)
{
	if (facts->blamed)
		return (enum cw_class)facts->blamed->verdict_class;
	if (has_first(facts))
		return CW_CLASS_PROCESS_DEAD;
	for (uint32_t i = 0; facts->input->list && i < facts->input->list->n; i++)
		if (facts->input->list->v[i].verdict_class == CW_CLASS_MISMATCH)
			return CW_CLASS_MISMATCH;
	return CW_CLASS_P2P_UNMATCHED;
}

static void summarize(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
		      const struct cw_incident_facts *to, char *buf, size_t len)
{
	uint32_t earliest = facts->first->earliest, others = n_dead(facts) - facts->first->n_first;
	int64_t within = last_ns(facts) - first_ns(facts);

	buf[0] = '\0';
	if (facts->blamed) {
		say_blamed(b, facts, buf, len);
	} else if (has_first(facts)) {
		say_first(b, facts, buf, len);
	} else if (facts->first->outcome == CW_POSTMORTEM_CANCELLED) {
		const struct cw_snap_rank *r = rank_of(facts, earliest);
		char how[96];

		cw_postmortem_format_end(&facts->deaths[earliest], how, sizeof(how));
		cw_text_append(buf, len, "the job was cancelled: rank %d on %s %s%s", r->rank,
			       node_of(facts, earliest), cw_cause_verb(r->cause_kind, r->cause_by),
			       r->cause && *r->cause ? r->cause : how);
	} else {
		cw_text_append(buf, len, "all ranks ended without an error, but %s",
			       class_of(facts) == CW_CLASS_MISMATCH
				       ? "data were wrong"
				       : "sends and receives did not match");
	}
	if (has_first(facts) && others)
		cw_text_append(buf, len, "; %u other%s ended within %.1f s", others,
			       others == 1 ? "" : "s", seconds(within > 0 ? within : 0));
	/* If we blame mismatched calls, the summary already contains them. */
	if (to->n_wrong_data &&
	    !(facts->blamed && facts->blamed->verdict_class == CW_CLASS_MISMATCH))
		cw_text_append(buf, len, "; not told before: %s",
			       cw_fact_text(to->wrong_data[0].text));
}

/* ---- the verdict ---- */

static enum cw_detail detail_of(const struct cw_postmortem_facts *facts)
{
	uint32_t i = 0;

	if (facts->blamed)
		return (enum cw_detail)facts->blamed->detail;
	while (i < facts->input->snap->n_ranks && !facts->is_first[i])
		i++;
	if (i == facts->input->snap->n_ranks || !has_first(facts))
		return CW_DETAIL_NONE;
	if (facts->deaths[i].is_oom_killed)
		return CW_DETAIL_OOM_KILLED;
	return facts->deaths[i].liveness == CW_LIVE_EXITED ? CW_DETAIL_EXITED : CW_DETAIL_KILLED;
}

/*
 * True if a request ended one of the first ranks. A request has a reason, and the reason may be an
 * end that we did not see.
 */
static bool was_first_asked(const struct cw_postmortem_facts *facts)
{
	for (uint32_t i = 0; i < facts->input->snap->n_ranks; i++)
		if (facts->is_first[i] &&
		    cw_postmortem_kind(&facts->deaths[i]) == CW_POSTMORTEM_ASKED)
			return true;
	return false;
}

/*
 * Returns the confidence. If the times of the ends decide and we know all ends, the result is
 * certain. A decision by cause is a heuristic, and a tie is no decision.
 */
static enum cw_confidence confidence_of(const struct cw_postmortem_facts *facts)
{
	if (facts->blamed)
		return facts->blamed->confidence > CW_CONFIDENCE_LIKELY
			       ? CW_CONFIDENCE_LIKELY
			       : (enum cw_confidence)facts->blamed->confidence;
	switch (facts->first->reason) {
	case CW_FIRST_ONLY:
	case CW_FIRST_BY_TIME:
		return is_all_known(facts) && !was_first_asked(facts) ? CW_CONFIDENCE_CERTAIN
								      : CW_CONFIDENCE_LIKELY;
	case CW_FIRST_BY_CAUSE:
		return CW_CONFIDENCE_LIKELY;
	default:
		return CW_CONFIDENCE_POSSIBLE;
	}
}

/* Returns the index of the rank with this number; the number of ranks if it is not visible. */
static uint32_t index_of(const struct cw_postmortem_facts *facts, int32_t label)
{
	uint32_t i = 0;

	while (i < facts->input->snap->n_ranks && rank_of(facts, i)->rank != label)
		i++;
	return i;
}

static void add_culprit(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
			uint32_t index, int32_t label, struct cw_incident_facts *to)
{
	struct cw_incident_culprit *culprit = &to->culprits[to->n_culprits++];
	char how[96] = "is not visible", text[CW_REASON_TEXT_MAX];
	const char *cause = NULL, *verb = "";

	cw_facts_culprit(facts->input->snap, index, culprit);
	culprit->rank = label;
	if (index < facts->input->snap->n_ranks) {
		const struct cw_snap_rank *r = rank_of(facts, index);

		cause = r->cause;
		verb = cw_cause_verb(r->cause_kind, r->cause_by);
		cw_postmortem_format_end(&facts->deaths[index], how, sizeof(how));
	}
	(void)snprintf(text, sizeof(text), "%s%s", verb, cause && *cause ? cause : how);
	culprit->reason = cw_facts_plain(b, text);
}

static void add_culprits(struct cw_facts_builder *b, const struct cw_postmortem_facts *facts,
			 struct cw_incident_facts *to)
{
	const struct cw_postmortem_wait *w = facts->blamed;

	to->culprits = cw_facts_list(b, struct cw_incident_culprit, CW_POSTMORTEM_MAX_CULPRITS);
	for (uint32_t i = 0; to->culprits && w && i < n_culprits(w); i++)
		add_culprit(b, facts, index_of(facts, w->culprits[i]), w->culprits[i], to);
	for (uint32_t i = 0;
	     to->culprits && !w && has_first(facts) && i < facts->input->snap->n_ranks &&
	     to->n_culprits < CW_POSTMORTEM_MAX_CULPRITS;
	     i++)
		if (facts->is_first[i])
			add_culprit(b, facts, i, rank_of(facts, i)->rank, to);
}

/* ---- the document ---- */

json_t *cw_postmortem_doc(const struct cw_postmortem_facts *facts)
{
	const struct cw_postmortem_input *input = facts->input;
	struct cw_arena arena = { 0 };
	struct cw_facts_builder b = { .arena = &arena };
	char summary[1024], command[64 + CW_INCIDENT_ID_MAX];
	struct cw_incident_victims nobody = { .ranks = "" };
	struct cw_incident_coverage coverage = {
		.ranks_expected = input->snap->ranks_expected,
		.ranks_seen = input->snap->n_ranks,
		.missing = "",
		.untracked = input->snap->untracked,
	};
	struct cw_incident_times times = {
		.confirmed_wall_ns = wall_ns(facts, input->snap->now_ns),
	};
	struct cw_incident_facts to = {
		.schema = "collwatch.incident/1",
		.id = facts->id,
		.job = input->snap->job ? input->snap->job : "",
		.group = input->snap->group ? input->snap->group : "",
		.verdict_class = cw_facts_named(class_of(facts), cw_class_name),
		.detail = cw_facts_named(detail_of(facts), cw_detail_name),
		.confidence = cw_facts_named(confidence_of(facts), cw_confidence_name),
		.hang = cw_facts_named(CW_HANG_NONE, cw_hang_name),
		.severity = cw_facts_named(CW_SEVERITY_FAILED, cw_severity_name),
		.victims = &nobody,
		.coverage = &coverage,
		.times = &times,
		.leader = input->self,
		.command = command,
		.uid = input->uid,
		.closed_as = cw_facts_named(CW_CLOSED_AS_JOB_ENDED, cw_closed_as_name),
		.ending = summary,
		.first = first_of(&b, facts),
		.ranks_ended = n_dead(facts),
		.first_end_wall_ns = wall_ns(facts, first_ns(facts)),
		.last_end_wall_ns = wall_ns(facts, last_ns(facts)),
		.waited_for = last_wait(&b, facts),
	};
	json_t *doc;

	(void)snprintf(command, sizeof(command), "collwatch report %s", facts->id);
	add_culprits(&b, facts, &to);
	add_ends(&b, facts, &to);
	add_ended(&b, facts, &to);
	add_all_open(&b, facts, &to);
	add_last_calls(&b, facts, &to);
	add_wrong_data(&b, facts, &to);
	add_notes(&b, facts, &to);
	summarize(&b, facts, &to, summary, sizeof(summary));
	to.summary = cw_facts_plain(&b, summary);
	doc = b.bad ? NULL : cw_incident_facts_write(&to);
	cw_arena_fini(&arena);
	return doc;
}
