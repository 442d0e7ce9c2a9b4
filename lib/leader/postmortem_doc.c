/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every list of the document has a limit, independent of the size of the job. We list the earliest
 * ends one by one, and group all ends by kind. We list open calls by communicator and number, and
 * the last calls of relevant ranks only. Texts come from foreign processes, and the printer escapes
 * them.
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
#include "report/json_util.h"
#include "report/process_doc.h"
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

static json_t *wall(const struct cw_postmortem_facts *facts, int64_t ns)
{
	return cw_json_wall(wall_ns(facts, ns));
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
static struct picked pick(const struct cw_postmortem_facts *facts,
			  bool (*is)(const struct cw_postmortem_facts *facts, uint32_t i,
				     const void *arg),
			  const void *arg)
{
	uint32_t n = facts->input->snap->n_ranks;
	struct picked p = { .v = calloc((size_t)n + 1, sizeof(*p.v)) };

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

static json_t *end_doc(const struct cw_postmortem_facts *facts, uint32_t index)
{
	static const char *const kinds[] = {
		[CW_POSTMORTEM_OWN] = "own",           [CW_POSTMORTEM_KILLED] = "killed",
		[CW_POSTMORTEM_REACTION] = "reaction", [CW_POSTMORTEM_ASKED] = "asked",
		[CW_POSTMORTEM_NO_FAILURE] = "none",   [CW_POSTMORTEM_ALIVE] = "alive",
	};
	const struct cw_postmortem_death *death = &facts->deaths[index];
	const struct cw_snap_rank *r = rank_of(facts, index);
	json_t *doc;
	char how[96];
	int bad = 0;

	cw_postmortem_format_end(death, how, sizeof(how));
	doc = cw_json_object((struct cw_json_member[]){
		{ "rank", json_integer(r->rank) },
		{ "host", cw_json_text(node_of(facts, index)) },
		{ "pid", json_integer(r->pid) },
		{ NULL },
	});
	bad |= cw_process_doc_add_pod(doc, r);
	bad |= cw_json_add(
		doc, (struct cw_json_member[]){
			     { "how", json_string(how) },
			     { "kind", json_string(kinds[cw_postmortem_kind(death)]) },
			     { "cause", cw_json_text(r->cause && *r->cause ? r->cause : NULL) },
			     { NULL },
		     });
	bad |= cw_process_doc_add_cause(doc, r);
	bad |= cw_json_add(
		doc,
		(struct cw_json_member[]){
			{ "first", json_boolean(facts->is_first[index]) },
			{ "ended", wall(facts, death->ended_ns) },
			{ "ended_ns", wall_ns(facts, death->ended_ns)
					      ? json_integer(wall_ns(facts, death->ended_ns))
					      : json_null() },
			{ "after_s", death->ended_ns && facts->first->n_failed
					     ? json_real(seconds(death->ended_ns - first_ns(facts)))
					     : json_null() },
			{ "unsure_s", json_real(seconds(death->unsure_ns)) },
			{ NULL },
		});
	return cw_json_finish(doc, bad);
}

static json_t *ends_doc(const struct cw_postmortem_facts *facts, uint32_t *ret_omitted)
{
	uint32_t n = facts->input->snap->n_ranks;
	_cleanup_(freep) struct by_time *order = calloc((size_t)n + 1, sizeof(*order));
	json_t *list = json_array();
	int bad = order ? 0 : -1;

	for (uint32_t i = 0; order && i < n; i++)
		order[i] =
			(struct by_time){ is_dead(facts, i) ? facts->deaths[i].ended_ns : INT64_MAX,
					  i };
	if (order)
		qsort(order, n, sizeof(*order), by_time);
	for (uint32_t i = 0; !bad && i < n && i < CW_POSTMORTEM_DOC_MAX_ENDS; i++)
		bad |= json_array_append_new(list, end_doc(facts, order[i].rank));
	*ret_omitted = n > CW_POSTMORTEM_DOC_MAX_ENDS ? n - CW_POSTMORTEM_DOC_MAX_ENDS : 0;
	return cw_json_finish(list, bad);
}

static bool ended_alike(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	const struct cw_postmortem_death *a = &facts->deaths[i], *b = arg;

	return a->liveness == b->liveness && a->exit_code == b->exit_code &&
	       a->term_signal == b->term_signal && a->is_oom_killed == b->is_oom_killed;
}

static json_t *group_doc(const struct cw_postmortem_facts *facts, uint32_t i, uint32_t *ret_n)
{
	_cleanup_(free_picked) struct picked p = pick(facts, ended_alike, &facts->deaths[i]);
	_cleanup_(freep) char *set = p.v ? cw_rankset_format_alloc(p.v, p.n) : NULL;
	char how[96];

	*ret_n = p.n;
	cw_postmortem_format_end(&facts->deaths[i], how, sizeof(how));
	return cw_json_object((struct cw_json_member[]){
		{ "ranks", json_string(set) },
		{ "count", json_integer(p.n) },
		{ "how", json_string(how) },
		{ NULL },
	});
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

static json_t *groups_doc(const struct cw_postmortem_facts *facts, uint32_t *ret_omitted)
{
	uint32_t heads[CW_POSTMORTEM_DOC_MAX_GROUPS], n = 0, in = 0, of_one;
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < facts->input->snap->n_ranks && n < CW_POSTMORTEM_DOC_MAX_GROUPS;
	     i++) {
		if (!is_new_group(facts, heads, n, i))
			continue;
		heads[n++] = i;
		bad |= json_array_append_new(list, group_doc(facts, i, &of_one));
		in += of_one;
	}
	*ret_omitted = facts->input->snap->n_ranks - in;
	return cw_json_finish(list, bad);
}

/* ---- the first death ---- */

static bool is_first(const struct cw_postmortem_facts *facts, uint32_t i, const void *arg)
{
	(void)arg; /* pick() passes it */
	return facts->is_first[i];
}

static json_t *first_doc(const struct cw_postmortem_facts *facts)
{
	_cleanup_(free_picked) struct picked p = pick(facts, is_first, NULL);
	_cleanup_(freep) char *set = p.v ? cw_rankset_format_alloc(p.v, p.n) : NULL;

	if (!has_first(facts))
		return json_null();
	return cw_json_object((struct cw_json_member[]){
		{ "ranks", json_string(set) },
		{ "count", json_integer(p.n) },
		{ "by", json_string(cw_postmortem_reason_name(facts->first->reason)) },
		{ "together", json_integer(facts->first->n_together) },
		{ "margin_s", facts->first->margin_ns ? json_real(seconds(facts->first->margin_ns))
						      : json_null() },
		{ NULL },
	});
}

/* ---- the last wait ---- */

static json_t *wait_doc(const struct cw_postmortem_facts *facts)
{
	const struct cw_postmortem_memory *m = facts->input->memory;
	const struct cw_postmortem_wait *w = m ? &m->before : NULL;
	json_t *ranks;
	int64_t until;
	int bad = 0;

	if (!w || !w->since_ns)
		return json_null();
	until = facts->first->n_failed ? first_ns(facts) : facts->input->snap->now_ns;
	ranks = json_array();
	for (uint32_t i = 0; i < w->n_culprits && i < CW_POSTMORTEM_MAX_CULPRITS; i++)
		bad |= json_array_append_new(ranks, json_integer(w->culprits[i]));
	return cw_json_object((struct cw_json_member[]){
		{ "class", json_string(cw_class_name(w->verdict_class)) },
		{ "detail", json_string(cw_detail_name(w->detail)) },
		{ "confidence", json_string(cw_confidence_name(w->confidence)) },
		{ "ranks", cw_json_finish(ranks, bad) },
		{ "count", json_integer(w->n_culprits) },
		{ "for_s", json_real(until > w->since_ns ? seconds(until - w->since_ns) : 0) },
		{ "summary", cw_json_text(w->summary) },
		{ NULL },
	});
}

/* ---- calls ---- */

static json_t *op_doc(const struct cw_postmortem_facts *facts, const struct cw_snap_comm *comm,
		      const struct cw_op *op)
{
	return cw_json_object((struct cw_json_member[]){
		{ "comm", cw_json_hex(comm->id) },
		{ "comm_name", cw_json_text(comm->name ? comm->name : "") },
		{ "kind", json_string(cw_op_kind_name(op->kind)) },
		{ "coll_seq", cw_json_u64(op->coll_seq) },
		{ "dtype", json_string(cw_dtype_name(op->dtype)) },
		{ "count", cw_json_u64(op->count) },
		{ "done", json_boolean(op->progress == CW_PROGRESS_COMPLETED) },
		{ "entered", wall(facts, op->enter_ns) },
		{ NULL },
	});
}

static bool is_same_call(const struct cw_op *a, const struct cw_op *b)
{
	return a->kind == b->kind && a->coll_seq == b->coll_seq && a->p2p_seq == b->p2p_seq;
}

/* Lists the members of a communicator whose oldest open call equals the one of `head`. */
static json_t *open_doc(const struct cw_postmortem_facts *facts, const struct cw_snap_comm *comm,
			uint32_t head)
{
	_cleanup_(freep) int32_t *ranks = calloc((size_t)comm->nranks + 1, sizeof(*ranks));
	_cleanup_(freep) char *set = NULL;
	const struct cw_op *op = comm->members[head].pending;
	json_t *doc;
	uint32_t n = 0;
	int bad = 0;

	for (uint32_t m = head; ranks && m < comm->nranks; m++)
		if (comm->members[m].rank != CW_SNAP_NONE && comm->members[m].pending &&
		    is_same_call(comm->members[m].pending, op))
			ranks[n++] = facts->input->snap->ranks[comm->members[m].rank].rank;
	set = ranks ? cw_rankset_format_alloc(ranks, n) : NULL;
	doc = op_doc(facts, comm, op);
	bad |= json_object_set_new(doc, "ranks", json_string(set));
	bad |= json_object_set_new(doc, "members", json_integer(n));
	return cw_json_finish(doc, bad);
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

static json_t *all_open_doc(const struct cw_postmortem_facts *facts)
{
	const struct cw_snapshot *snap = facts->input->snap;
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t c = 0; c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c];

		for (uint32_t m = 0; m < comm->nranks && m < MAX_COMPARED; m++) {
			if (comm->members[m].rank == CW_SNAP_NONE || !comm->members[m].pending ||
			    !is_new_call(comm, m))
				continue;
			if (json_array_size(list) == CW_POSTMORTEM_DOC_MAX_OPEN)
				return cw_json_finish(list, bad);
			bad |= json_array_append_new(list, open_doc(facts, comm, m));
		}
	}
	return cw_json_finish(list, bad);
}

static bool matters(const struct cw_postmortem_facts *facts, uint32_t i)
{
	const struct cw_postmortem_memory *m = facts->input->memory;

	if (facts->is_first[i])
		return true;
	for (uint32_t k = 0;
	     m && m->before.since_ns && k < m->before.n_culprits && k < CW_POSTMORTEM_MAX_CULPRITS;
	     k++)
		if (m->before.culprits[k] == rank_of(facts, i)->rank)
			return true;
	return false;
}

/*
 * Lists the newest calls of a rank on one communicator, the oldest first. The calls come from the
 * rank's window. Without a window, we list only the last call.
 */
static json_t *calls_doc(const struct cw_postmortem_facts *facts, const struct cw_snap_comm *comm,
			 const struct cw_snap_member *m)
{
	uint32_t from = m->n_window > CW_POSTMORTEM_DOC_MAX_OPS
				? m->n_window - CW_POSTMORTEM_DOC_MAX_OPS
				: 0;
	json_t *calls = json_array();
	int bad = 0;

	for (uint32_t i = from; m->window && i < m->n_window; i++)
		bad |= json_array_append_new(calls, op_doc(facts, comm, &m->window[i]));
	if (!m->window && m->last)
		bad |= json_array_append_new(calls, op_doc(facts, comm, m->last));
	return cw_json_object((struct cw_json_member[]){
		{ "rank", json_integer(facts->input->snap->ranks[m->rank].rank) },
		{ "comm_name", cw_json_text(comm->name ? comm->name : "") },
		{ "entered", cw_json_u64(m->coll_entered) },
		{ "calls", cw_json_finish(calls, bad) },
		{ NULL },
	});
}

static json_t *last_doc(const struct cw_postmortem_facts *facts)
{
	const struct cw_snapshot *snap = facts->input->snap;
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank == CW_SNAP_NONE || !matters(facts, member->rank) ||
			    (!member->last && !member->window))
				continue;
			if (json_array_size(list) == CW_POSTMORTEM_DOC_MAX_LAST)
				return cw_json_finish(list, bad);
			bad |= json_array_append_new(list,
						     calls_doc(facts, &snap->comms[c], member));
		}
	return cw_json_finish(list, bad);
}

static json_t *wrong_data_doc(const struct cw_postmortem_facts *facts)
{
	const struct cw_verdict_list *v = facts->input->list;
	char text[CW_VERDICT_TEXT_MAX];
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; v && i < v->n; i++)
		if (cw_postmortem_is_wrong_data(&v->v[i]) && !(facts->input->alerted & 1u << i))
			bad |= json_array_append_new(
				list, cw_json_text(cw_say_text(&v->v[i].said, text, sizeof(text))));
	return cw_json_finish(list, bad);
}

/* ---- unknown facts ---- */

static void note(json_t *notes, int *bad, const char *text)
{
	if (json_array_size(notes) < CW_POSTMORTEM_DOC_MAX_NOTES)
		*bad |= json_array_append_new(notes, cw_json_text(text));
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

static void note_ranks(const struct cw_postmortem_facts *facts, json_t *notes, int *bad,
		       bool (*is)(const struct cw_postmortem_facts *facts, uint32_t i,
				  const void *arg),
		       const char *what)
{
	_cleanup_(free_picked) struct picked p = pick(facts, is, NULL);
	char ranks[RANKS_BYTES + 16], text[RANKS_BYTES + 256];

	if (!p.n)
		return;
	say_ranks(p.v, p.n, ranks, sizeof(ranks));
	(void)snprintf(text, sizeof(text), "%s: %s", ranks, what);
	note(notes, bad, text);
}

static json_t *notes_doc(const struct cw_postmortem_facts *facts)
{
	const struct cw_snapshot *snap = facts->input->snap;
	json_t *notes = json_array();
	int bad = 0;

	note_ranks(facts, notes, &bad, is_not_known_dead,
		   "the way they ended is not known, because their node does not report");
	note_ranks(facts, notes, &bad, lacks_kernel,
		   "no kernel evidence (BPF): senders of signals are not known");
	note_ranks(facts, notes, &bad, has_outside_sender,
		   "the signal came from outside of the daemon's pid namespace: its sender is not "
		   "known here");
	note_ranks(facts, notes, &bad, has_unknown_clock,
		   "their node's clock was measured too rarely to order their ends exactly");
	if (!facts->input->memory)
		note(notes, &bad,
		     "this leader did not see the job just before the deaths, so the waits are not "
		     "known");
	for (uint32_t i = 0; i < snap->n_notes; i++)
		note(notes, &bad, snap->notes[i]);
	return cw_json_finish(notes, bad);
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
	if (facts->first->reason == CW_POSTMORTEM_BY_CAUSE)
		return "was the first to fail";
	if (facts->blamed)
		return "ended first";
	if (facts->first->reason == CW_POSTMORTEM_BY_TIME)
		return "was the first to fail";
	return is_all_known(facts) ? "alone failed" : "failed";
}

static void say_first(const struct cw_postmortem_facts *facts, char *buf, size_t len)
{
	_cleanup_(free_picked) struct picked p = pick(facts, is_first, NULL);
	const struct cw_snap_rank *r;
	uint32_t i = 0;
	char ranks[RANKS_BYTES + 16], how[96];

	while (!facts->is_first[i])
		i++;
	r = rank_of(facts, i);
	say_ranks(p.v, p.n, ranks, sizeof(ranks));
	if (facts->first->reason == CW_POSTMORTEM_TIE)
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
	if (facts->first->reason == CW_POSTMORTEM_BY_CAUSE)
		cw_text_append(buf, len,
			       ", which can explain the end of %u other%s at the same time",
			       facts->first->n_together - facts->first->n_first,
			       facts->first->n_together - facts->first->n_first == 1 ? "" : "s");
}

static void say_blamed(const struct cw_postmortem_facts *facts, char *buf, size_t len)
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
	say_first(facts, buf, len);
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

static void summarize(const struct cw_postmortem_facts *facts, const json_t *wrong, char *buf,
		      size_t len)
{
	uint32_t earliest = facts->first->earliest, others = n_dead(facts) - facts->first->n_first;
	int64_t within = last_ns(facts) - first_ns(facts);

	buf[0] = '\0';
	if (facts->blamed) {
		say_blamed(facts, buf, len);
	} else if (has_first(facts)) {
		say_first(facts, buf, len);
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
	if (json_array_size(wrong) &&
	    !(facts->blamed && facts->blamed->verdict_class == CW_CLASS_MISMATCH))
		cw_text_append(buf, len, "; not told before: %s",
			       json_string_value(json_array_get(wrong, 0)));
}

/* ---- the document ---- */

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
	case CW_POSTMORTEM_ONLY:
	case CW_POSTMORTEM_BY_TIME:
		return is_all_known(facts) && !was_first_asked(facts) ? CW_CONFIDENCE_CERTAIN
								      : CW_CONFIDENCE_LIKELY;
	case CW_POSTMORTEM_BY_CAUSE:
		return CW_CONFIDENCE_LIKELY;
	default:
		return CW_CONFIDENCE_POSSIBLE;
	}
}

/* Lists the rank numbers of the culprits. */
static json_t *culprits_doc(const struct cw_postmortem_facts *facts)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0;
	     facts->blamed && i < facts->blamed->n_culprits && i < CW_POSTMORTEM_MAX_CULPRITS; i++)
		bad |= json_array_append_new(list, json_integer(facts->blamed->culprits[i]));
	for (uint32_t i = 0;
	     !facts->blamed && has_first(facts) && i < facts->input->snap->n_ranks &&
	     json_array_size(list) < CW_POSTMORTEM_MAX_CULPRITS;
	     i++)
		if (facts->is_first[i])
			bad |= json_array_append_new(list, json_integer(rank_of(facts, i)->rank));
	return cw_json_finish(list, bad);
}

json_t *cw_postmortem_doc(const struct cw_postmortem_facts *facts)
{
	const struct cw_postmortem_input *input = facts->input;
	uint32_t omitted = 0, apart = 0;
	json_t *wrong = wrong_data_doc(facts), *ends = ends_doc(facts, &omitted);
	json_t *ended = groups_doc(facts, &apart);
	char summary[1024], command[64 + CW_INCIDENT_ID_MAX];

	summarize(facts, wrong, summary, sizeof(summary));
	(void)snprintf(command, sizeof(command), "collwatch report %s", facts->id);
	return cw_json_object((struct cw_json_member[]){
		{ "schema", json_string("collwatch.postmortem/1") },
		{ "id", json_string(facts->id) },
		{ "incident", *input->incident ? json_true() : json_false() },
		{ "job", cw_json_text(input->snap->job ? input->snap->job : "") },
		{ "uid", json_integer(input->uid) },
		{ "class", json_string(cw_class_name(class_of(facts))) },
		{ "detail", json_string(cw_detail_name(detail_of(facts))) },
		{ "confidence", json_string(cw_confidence_name(confidence_of(facts))) },
		{ "culprits", culprits_doc(facts) },
		{ "summary", cw_json_text(summary) },
		{ "first", first_doc(facts) },
		{ "ends", ends },
		{ "ends_omitted", json_integer(omitted) },
		{ "ended", ended },
		{ "ended_otherwise", json_integer(apart) },
		{ "waited_for", wait_doc(facts) },
		{ "open", all_open_doc(facts) },
		{ "last_calls", last_doc(facts) },
		{ "wrong_data", wrong },
		{ "notes", notes_doc(facts) },
		{ "coverage",
		  cw_json_object((struct cw_json_member[]){
			  { "ranks_expected", json_integer(input->snap->ranks_expected) },
			  { "ranks_seen", json_integer(input->snap->n_ranks) },
			  { "ranks_ended", json_integer(n_dead(facts)) },
			  { NULL },
		  }) },
		{ "times", cw_json_object((struct cw_json_member[]){
				   { "first", wall(facts, first_ns(facts)) },
				   { "last", wall(facts, last_ns(facts)) },
				   { "confirmed", wall(facts, input->snap->now_ns) },
				   { NULL },
			   }) },
		{ "leader", cw_json_text(input->self) },
		{ "command", json_string(command) },
		{ NULL },
	});
}
