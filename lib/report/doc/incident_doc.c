/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/incident_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "model/rankset.h"
#include "report/doc/nccl_errors.h"
#include "report/doc/said_doc.h"
#include "report/frames.h"
#include "report/json_util.h"
#include "report/nonfinite_inputs.h"
#include "report/process_doc.h"
#include "say/english.h"

/*
 * We add call stacks to at most this many sides and waits. A chain may have thousands of waits, and
 * the document is sent as an alert.
 */
#define STACKS_MAX 8u

/* Returns the user's number of the rank. -1: the rank has none, or the index is out of range. */
static int32_t label_of(const struct cw_snapshot *snap, uint32_t rank)
{
	return rank < snap->n_ranks ? snap->ranks[rank].rank : -1;
}

static json_t *label_set(const struct cw_snapshot *snap, const uint32_t *ranks, uint32_t n)
{
	_cleanup_(freep) int32_t *labels = calloc(n ? n : 1, sizeof(*labels));
	_cleanup_(freep) char *text = NULL;

	if (!labels)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		labels[i] = label_of(snap, ranks[i]);
	text = cw_rankset_format_alloc(labels, n);
	return text ? json_string(text) : NULL;
}

/* Returns null if this kind of op has no peer or root. */
static json_t *comm_rank_or_null(int32_t comm_rank)
{
	return comm_rank == CW_PEER_NONE ? json_null() : json_integer(comm_rank);
}

/* Makes the JSON of an op. has_stack: include the call stack if it is known. */
static json_t *op_doc(const struct cw_snapshot *snap, const struct cw_op *op, bool has_stack)
{
	const char *stack = has_stack ? cw_snapshot_stack(snap, op) : NULL;
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "kind", json_string(cw_op_kind_name(op->kind)));
	bad |= json_object_set_new(doc, "dtype", json_string(cw_dtype_name(op->dtype)));
	bad |= json_object_set_new(doc, "count", cw_json_u64(op->count));
	bad |= json_object_set_new(
		doc, "redop",
		op->redop == CW_REDOP_NONE ? json_null() : json_string(cw_redop_name(op->redop)));
	bad |= json_object_set_new(doc, "root", comm_rank_or_null(op->root));
	bad |= json_object_set_new(doc, "peer", comm_rank_or_null(op->peer));
	if (stack)
		bad |= json_object_set_new(doc, "stack", cw_json_lines(stack));
	return cw_json_finish(doc, bad);
}

static json_t *culprit_doc(const struct cw_snapshot *snap, const struct cw_culprit *culprit)
{
	const struct cw_snap_rank *rank = NULL;
	const char *host = "";
	json_t *doc = json_object();
	int bad = 0;

	if (culprit->rank < snap->n_ranks)
		rank = &snap->ranks[culprit->rank];
	if (rank && rank->node < snap->n_nodes)
		host = snap->nodes[rank->node].name;
	bad |= json_object_set_new(doc, "rank", json_integer(rank ? rank->rank : -1));
	bad |= json_object_set_new(doc, "host", cw_json_text(host ? host : ""));
	bad |= json_object_set_new(doc, "pid", json_integer(rank ? rank->pid : 0));
	if (rank) {
		bad |= cw_process_doc_add_pod(doc, rank);
		bad |= cw_process_doc_add_state(doc, rank);
	}
	bad |= cw_said_set(doc, "reason", &culprit->said, CW_REASON_TEXT_MAX);
	return cw_json_finish(doc, bad);
}

static json_t *culprits_doc(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < v->n_culprits; i++)
		bad |= json_array_append_new(list, culprit_doc(snap, &v->culprits[i]));
	return cw_json_finish(list, bad);
}

static json_t *side_doc(const struct cw_snapshot *snap, const struct cw_side *side, bool has_stack)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "ranks", label_set(snap, side->ranks, side->n_ranks));
	bad |= json_object_set_new(doc, "op",
				   side->has_op ? op_doc(snap, &side->op, has_stack) : json_null());
	return cw_json_finish(doc, bad);
}

static json_t *where_doc(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	const struct cw_snap_comm *comm;
	json_t *doc, *sides;
	int bad = 0;

	if (v->comm >= snap->n_comms)
		return json_null();
	comm = &snap->comms[v->comm];
	doc = json_object();
	sides = json_array();
	for (uint32_t i = 0; i < v->n_sides; i++)
		bad |= json_array_append_new(sides, side_doc(snap, &v->sides[i], i < STACKS_MAX));
	bad |= json_object_set_new(doc, "comm", cw_json_hex(comm->id));
	bad |= json_object_set_new(doc, "comm_name", cw_json_text(comm->name));
	bad |= json_object_set_new(doc, "coll_seq", cw_json_u64(v->coll_seq));
	if (v->verdict_class == CW_CLASS_MISMATCH && !v->n_sides)
		bad |= json_object_set_new(doc, "after_seq", cw_json_u64(v->after_seq));
	bad |= json_object_set_new(doc, "sides", sides);
	return cw_json_finish(doc, bad);
}

static json_t *wait_doc(const struct cw_snapshot *snap, const struct cw_wait *wait, bool has_stack)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "rank", json_integer(label_of(snap, wait->rank)));
	bad |= json_object_set_new(
		doc, "comm",
		wait->comm < snap->n_comms ? cw_json_hex(snap->comms[wait->comm].id) : json_null());
	bad |= json_object_set_new(doc, "comm_name",
				   wait->comm < snap->n_comms
					   ? cw_json_text(snap->comms[wait->comm].name)
					   : json_null());
	bad |= json_object_set_new(doc, "coll_seq", cw_json_u64(wait->op.coll_seq));
	bad |= json_object_set_new(doc, "op", op_doc(snap, &wait->op, has_stack));
	bad |= json_object_set_new(doc, "waits_for", json_integer(label_of(snap, wait->waits_for)));
	return cw_json_finish(doc, bad);
}

/*
 * The engine makes one list of waits: a cycle for a deadlock, otherwise the chain to the culprit.
 * The document has a member for each. `cycle` selects the member; the member that does not apply is
 * empty.
 */
static json_t *waits_doc(const struct cw_snapshot *snap, const struct cw_verdict *v, bool cycle)
{
	json_t *list = json_array();
	int bad = 0;

	if (cycle == (v->verdict_class == CW_CLASS_DEADLOCK))
		for (uint32_t i = 0; i < v->n_chain; i++)
			bad |= json_array_append_new(list,
						     wait_doc(snap, &v->chain[i], i < STACKS_MAX));
	return cw_json_finish(list, bad);
}

static json_t *alternative_doc(const struct cw_snapshot *snap, const struct cw_alternative *alt)
{
	json_t *doc = json_object(), *culprits = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < alt->n_culprits; i++) {
		struct cw_culprit culprit = { .rank = alt->culprits[i] };

		bad |= json_array_append_new(culprits, culprit_doc(snap, &culprit));
	}
	bad |= json_object_set_new(doc, "class", json_string(cw_class_name(alt->verdict_class)));
	bad |= json_object_set_new(doc, "culprits", culprits);
	bad |= json_object_set_new(doc, "probability", json_real(alt->probability));
	bad |= cw_said_set(doc, "reason", &alt->said, CW_REASON_TEXT_MAX);
	return cw_json_finish(doc, bad);
}

static json_t *alternatives_doc(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < v->n_alternatives; i++)
		bad |= json_array_append_new(list, alternative_doc(snap, &v->alternatives[i]));
	return cw_json_finish(list, bad);
}

static json_t *text_list(const char *const *texts, uint32_t n)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < n; i++)
		bad |= json_array_append_new(list, cw_json_text(texts[i]));
	return cw_json_finish(list, bad);
}

/*
 * Adds one sentence per excluded cause under "ruled_out", and its sayings under "ruled_out_said".
 */
static int add_ruled_out(json_t *doc, const struct cw_verdict *v)
{
	json_t *texts = json_array(), *said = json_array();
	char text[CW_REASON_TEXT_MAX];
	int bad = 0;

	for (uint32_t i = 0; i < v->n_ruled_out; i++) {
		const struct cw_clause *clause = &v->ruled_out_said[i];

		bad |= json_array_append_new(texts,
					     cw_json_text(cw_say_text(clause, text, sizeof(text))));
		bad |= json_array_append_new(said, cw_said_doc(clause));
	}
	bad |= json_object_set_new(doc, "ruled_out", texts);
	bad |= json_object_set_new(doc, "ruled_out" CW_SAID_SUFFIX, said);
	return bad;
}

/* True for a rank that other ranks' recordings mention, but whose own is missing. */
static bool is_known_by_name_only(const struct cw_snap_rank *r)
{
	return r->liveness == CW_LIVE_UNKNOWN && !(r->flags & CW_RANKF_HAS_RECORD) &&
	       !r->sampled_ns;
}

static uint32_t ranks_seen(const struct cw_snapshot *snap)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		n += !is_known_by_name_only(&snap->ranks[i]);
	return n;
}

/* Returns the set of ranks 0..ranks_expected-1 that no process claims. */
static json_t *missing_ranks(const struct cw_snapshot *snap)
{
	uint32_t n = snap->ranks_expected, n_missing = 0;
	_cleanup_(freep) bool *seen = NULL;
	_cleanup_(freep) int32_t *missing = NULL;
	_cleanup_(freep) char *text = NULL;

	if (n > CW_SNAP_MAX_RANKS)
		n = CW_SNAP_MAX_RANKS;
	seen = calloc(n ? n : 1, sizeof(*seen));
	missing = calloc(n ? n : 1, sizeof(*missing));
	if (!seen || !missing)
		return NULL;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		int32_t label = snap->ranks[i].rank;

		if (label >= 0 && (uint32_t)label < n && !is_known_by_name_only(&snap->ranks[i]))
			seen[label] = true;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!seen[i])
			missing[n_missing++] = (int32_t)i;
	text = cw_rankset_format_alloc(missing, n_missing);
	return text ? json_string(text) : NULL;
}

/*
 * Returns the ranks whose node has stopped reporting, so that we know only their past. null: there
 * are none.
 */
static json_t *last_known(const struct cw_snapshot *snap)
{
	_cleanup_(freep) uint32_t *ranks = calloc((size_t)snap->n_ranks + 1, sizeof(*ranks));
	int64_t since_ns = snap->now_ns;
	uint32_t n = 0;
	json_t *doc;
	int bad = 0;

	if (!ranks)
		return NULL;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_node *node = &snap->nodes[snap->ranks[i].node];

		if (node->state == CW_NODE_REPORTING)
			continue;
		ranks[n++] = i;
		if (node->last_digest_ns < since_ns)
			since_ns = node->last_digest_ns;
	}
	if (!n)
		return json_null();
	doc = json_object();
	bad |= json_object_set_new(doc, "ranks", label_set(snap, ranks, n));
	bad |= json_object_set_new(doc, "count", json_integer(n));
	bad |= json_object_set_new(doc, "age_s",
				   json_real((double)cw_bounded_ns(snap->now_ns - since_ns) / 1e9));
	return cw_json_finish(doc, bad);
}

static json_t *coverage_doc(const struct cw_snapshot *snap)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "ranks_expected", json_integer(snap->ranks_expected));
	bad |= json_object_set_new(doc, "ranks_seen", json_integer(ranks_seen(snap)));
	bad |= json_object_set_new(doc, "last_known", last_known(snap));
	bad |= json_object_set_new(doc, "missing", missing_ranks(snap));
	bad |= json_object_set_new(doc, "untracked", json_integer(snap->untracked));
	bad |= json_object_set_new(doc, "notes",
				   text_list((const char *const *)snap->notes, snap->n_notes));
	return cw_json_finish(doc, bad);
}

static json_t *times_doc(const struct cw_incident_info *info)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "last_progress", cw_json_wall(info->last_progress_wall_ns));
	bad |= json_object_set_new(doc, "stall", cw_json_wall(info->stall_wall_ns));
	bad |= json_object_set_new(doc, "confirmed", cw_json_wall(info->confirmed_wall_ns));
	bad |= json_object_set_new(doc, "resolved", cw_json_wall(info->resolved_wall_ns));
	return cw_json_finish(doc, bad);
}

/* Adds the time-out of the job's own watchdog, if it is known. */
static int add_timeout(json_t *doc, const struct cw_snapshot *snap)
{
	const struct cw_snap_rank *of = cw_snapshot_job_timeout(snap);

	json_t *timeout;
	int bad = 0;

	if (!of)
		return 0;
	timeout = json_pack("{s:f, s:b}", "seconds", (double)of->job_timeout_ns / 1e9, "assumed",
			    (of->flags & CW_RANKF_TIMEOUT_ASSUMED) != 0);
	if (of->job_timeout_source)
		bad = json_object_set_new(timeout, "set_by", cw_json_text(of->job_timeout_source));
	return json_object_set_new(doc, "job_timeout", cw_json_finish(timeout, bad));
}

/* Bytes of a summary that evidence and notes have made longer. */
#define SUMMARY_BYTES 1024

/*
 * Returns a copy of the text as an argument. If memory runs out, the argument is empty and the
 * clause is marked incomplete.
 */
static struct cw_arg arg_text(struct cw_clause *clause, const char *text)
{
	const char *copy = cw_arena_strdup(clause->arena, text);

	clause->is_incomplete = clause->is_incomplete || !copy;
	return (struct cw_arg){ .kind = CW_ARG_TEXT, .text = copy ? copy : "" };
}

/*
 * Reads the sayings of the incident's summary. If they are missing, or if this version does not
 * know one of them, the summary's text becomes a single saying. Returns 0 or -ENOMEM.
 */
static int read_summary(const json_t *incident, struct cw_clause *clause)
{
	int r = cw_said_read(json_object_get(incident, "summary" CW_SAID_SUFFIX), clause);

	if (r >= 0 || r == -ENOMEM)
		return r;
	cw_say(clause, text, arg_text(clause, cw_json_str(incident, "summary", "")));
	return clause->is_incomplete ? -ENOMEM : 0;
}

/* Adds a full stop to the clause if its last sentence has none. */
static void end_sentence(struct cw_clause *clause)
{
	if (clause->n && !cw_say_ends_sentence(clause))
		cw_say(clause, end);
}

/*
 * Adds the proposal to watch the job as a server. The advice contains it too, but some readers see
 * only the summary.
 */
static int add_proposal(json_t *doc, const struct cw_incident_info *info)
{
	struct cw_arena arena = { 0 };
	struct cw_clause summary = { .arena = &arena };
	int bad;

	if (!info->proposes_serving)
		return 0;
	bad = json_object_set_new(doc, "proposed_policy", json_string("serving"));
	bad |= read_summary(doc, &summary);
	end_sentence(&summary);
	cw_say(&summary, looks_like_server);
	bad |= cw_said_set(doc, "summary", &summary, SUMMARY_BYTES);
	cw_arena_fini(&arena);
	return bad ? -1 : 0;
}

static json_t *victims_doc(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "count", json_integer(v->n_victims));
	bad |= json_object_set_new(doc, "ranks", label_set(snap, v->victims, v->n_victims));
	return cw_json_finish(doc, bad);
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Returns the names of the blind spots: places that we cannot see and that may hide the cause. */
static json_t *blind_spots_doc(const struct cw_verdict *v)
{
	json_t *list = json_array();
	int bad = 0;

	for (unsigned u = 0; u < CW_BLIND__MAX; u++)
		if (v->blind_spots & 1u << u)
			bad |= json_array_append_new(list, json_string(cw_blind_spot_name(u)));
	return cw_json_finish(list, bad);
}

json_t *cw_incident_doc(const struct cw_snapshot *snap, const struct cw_verdict *v,
			const struct cw_incident_info *info)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(doc, "schema", json_string("collwatch.incident/1"));
	bad |= json_object_set_new(doc, "id", cw_json_text(or_empty(info->id)));
	bad |= json_object_set_new(doc, "job", cw_json_text(or_empty(snap->job)));
	bad |= json_object_set_new(doc, "group", cw_json_text(or_empty(snap->group)));
	bad |= json_object_set_new(doc, "class", json_string(cw_class_name(v->verdict_class)));
	bad |= json_object_set_new(doc, "detail", json_string(cw_detail_name(v->detail)));
	bad |= json_object_set_new(doc, "confidence",
				   json_string(cw_confidence_name(info->confidence)));
	bad |= json_object_set_new(doc, "blind_spots", blind_spots_doc(v));
	bad |= json_object_set_new(doc, "hang", json_string(cw_hang_name(info->hang)));
	bad |= json_object_set_new(doc, "severity", json_string(cw_severity_name(info->severity)));
	bad |= json_object_set_new(doc, "culprits", culprits_doc(snap, v));
	bad |= json_object_set_new(doc, "victims", victims_doc(snap, v));
	bad |= json_object_set_new(doc, "where", where_doc(snap, v));
	bad |= json_object_set_new(doc, "chain", waits_doc(snap, v, false));
	bad |= json_object_set_new(doc, "cycle", waits_doc(snap, v, true));
	bad |= json_object_set_new(doc, "alternatives", alternatives_doc(snap, v));
	bad |= add_ruled_out(doc, v);
	bad |= json_object_set_new(doc, "nccl_errors", cw_nccl_errors_doc(snap));
	bad |= json_object_set_new(doc, "nonfinite_inputs", cw_nonfinite_inputs_doc(snap));
	bad |= json_object_set_new(doc, "coverage", coverage_doc(snap));
	bad |= json_object_set_new(doc, "times", times_doc(info));
	bad |= add_timeout(doc, snap);
	bad |= cw_said_set(doc, "summary", &v->said, CW_VERDICT_TEXT_MAX);
	bad |= add_proposal(doc, info);
	bad |= json_object_set_new(doc, "leader", cw_json_text(or_empty(info->leader)));
	bad |= json_object_set_new(doc, "bundle", cw_json_text(info->bundle));
	return cw_json_finish(doc, bad);
}

const json_t *cw_incident_doc_evidence_of(const json_t *culprit, const json_t *evidence)
{
	const json_t *one;
	size_t i;

	json_array_foreach (evidence, i, one)
		if (cw_json_int(one, "pid", -1) == cw_json_int(culprit, "pid", -2) &&
		    strcmp(cw_json_str(one, "host", ""), cw_json_str(culprit, "host", "")) == 0)
			return one;
	return NULL;
}

/* True if the summary says that something keeps a process from running. */
static bool says_halt(const struct cw_clause *summary)
{
	for (uint32_t i = 0; i < summary->n; i++)
		switch (summary->said[i].saying) {
		case CW_SAYING_halted_inside:
		case CW_SAYING_halted_inside_of:
		case CW_SAYING_halted_never_reached:
		case CW_SAYING_halted_not_called:
		case CW_SAYING_halted_with_part_done:
			return true;
		default:
			break;
		}
	return false;
}

static bool is_state_stopped(const json_t *seen)
{
	const json_t *proc = json_object_get(seen, "proc");

	return proc && strcmp(cw_json_str(proc, "state", ""), "T") == 0;
}

/*
 * Adds the culprit's position to the summary. A rank that never reached a call is stuck at that
 * position, so the position goes into the sentence with "never reached". If the rank never reached
 * the call because it is stopped, the position gets its own sentence.
 */
static void say_position(struct cw_clause *summary, const json_t *seen, const char *where,
			 struct cw_arg who)
{
	struct cw_said *first = summary->n ? &summary->said[0] : NULL;
	struct cw_clause stuck = { .arena = summary->arena };
	char place[256];

	if (!first || first->saying != CW_SAYING_never_reached) {
		end_sentence(summary);
		cw_say(summary, is_in, who, arg_text(summary, where));
		return;
	}
	cw_say(&stuck, stuck_never_reached, first->args[0],
	       arg_text(&stuck, frame_place(seen, place, sizeof(place))), first->args[1],
	       first->args[2]);
	if (stuck.n)
		*first = stuck.said[0];
	summary->is_incomplete = summary->is_incomplete || stuck.is_incomplete;
}

/*
 * Adds the evidence about the only culprit to the summary. Each fact is added once: the members
 * "stopped" and "sits_in" show that an earlier call has added it.
 */
static int note_culprit(json_t *incident, json_t *culprit, const json_t *seen)
{
	struct cw_arena arena = { 0 };
	struct cw_clause summary = { .arena = &arena };
	int32_t label = (int32_t)cw_json_int(culprit, "rank", -1);
	struct cw_arg who = { .kind = CW_ARG_RANKS, .ranks = { .labels = &label, .n = 1 } };
	bool is_stopped = is_state_stopped(seen) && !json_object_get(culprit, "stopped");
	char where[256] = "";
	int bad;

	if (!json_object_get(culprit, "sits_in"))
		(void)cw_evidence_position(seen, where, sizeof(where));
	if (!is_stopped && !*where)
		return 0;
	bad = read_summary(incident, &summary);
	/* A stopped process makes no progress wherever it is; SIGCONT continues it. */
	if (!bad && is_stopped && !says_halt(&summary)) {
		end_sentence(&summary);
		cw_say(&summary, is_stopped, who);
	}
	if (!bad && *where)
		say_position(&summary, seen, where, who);
	bad |= summary.is_incomplete;
	if (is_stopped)
		bad |= json_object_set_new(culprit, "stopped", json_true());
	if (*where)
		bad |= json_object_set_new(culprit, "sits_in", cw_json_text(where));
	bad |= bad ? 0 : cw_said_set(incident, "summary", &summary, SUMMARY_BYTES);
	if (bad && is_stopped)
		(void)json_object_del(culprit, "stopped");
	if (bad && *where)
		(void)json_object_del(culprit, "sits_in");
	cw_arena_fini(&arena);
	return bad ? -1 : 0;
}

/* Adds a position to one of several culprits. The summary then states no positions. */
static int note_position(json_t *culprit, const json_t *seen)
{
	char where[256];

	if (json_object_get(culprit, "sits_in") ||
	    !*cw_evidence_position(seen, where, sizeof(where)))
		return 0;
	return json_object_set_new(culprit, "sits_in", cw_json_text(where));
}

int cw_incident_doc_add_positions(json_t *incident, const json_t *evidence)
{
	json_t *culprits = json_object_get(incident, "culprits"), *culprit;
	char kernel[512];
	size_t i;
	int bad = 0;

	json_array_foreach (culprits, i, culprit) {
		const json_t *seen = cw_incident_doc_evidence_of(culprit, evidence);

		if (!seen)
			continue;
		if (*cw_evidence_kernel(seen, kernel, sizeof(kernel)))
			bad |= json_object_set_new(culprit, "kernel", cw_json_text(kernel));
		bad |= json_array_size(culprits) == 1 ? note_culprit(incident, culprit, seen)
						      : note_position(culprit, seen);
	}
	return bad ? -ENOMEM : 0;
}

/*
 * Counts the collectives that all known members have completed, summed over the comms. The slowest
 * member counts, because a collective is complete only when every member has completed it. If
 * completion is not visible, the return of the host call counts.
 */
static uint64_t collectives_done(const struct cw_snapshot *snap)
{
	uint64_t total = 0;

	for (uint32_t c = 0; c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c];
		uint64_t least = UINT64_MAX;

		for (uint32_t m = 0; m < comm->nranks; m++) {
			const struct cw_snap_member *member = &comm->members[m];
			uint64_t done = 0;

			if (member->rank == CW_SNAP_NONE)
				continue;
			if (member->known & CW_KNOWN_COMPLETED)
				done = member->coll_completed;
			else if (member->known & CW_KNOWN_RETURNED)
				done = member->coll_returned;
			if (done < least)
				least = done;
		}
		if (least != UINT64_MAX)
			total += least;
	}
	return total;
}

bool cw_incident_doc_is_notice(const json_t *incident)
{
	return !strcmp(cw_json_str(incident, "severity", ""), cw_severity_name(CW_SEVERITY_NOTICE));
}

bool cw_incident_doc_is_over(const json_t *incident)
{
	return json_is_string(json_object_get(incident, "closed_as"));
}

const char *cw_incident_doc_how_over(const json_t *incident, char *buf, size_t len)
{
	static const char *const names[][2] = {
		{ "slow", "resolved" },
		{ "job_ended", "ended with its job" },
		{ "unseen", "seen by no node for ten minutes" },
	};
	const char *closed_as = cw_json_str(incident, "closed_as", ""), *how = "over";
	double lasted_s = json_number_value(json_object_get(incident, "lasted_s"));

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(closed_as, names[i][0]) == 0)
			how = names[i][1];
	if (lasted_s >= 1)
		(void)snprintf(buf, len, "%s after %.0f s", how, lasted_s);
	else
		(void)snprintf(buf, len, "%s", how);
	return buf;
}

/* A message that is delivered later than this states its age. */
#define LATE_NS (60 * CW_NS_PER_S)
/*
 * Says how old the summary is, because its present tense fits only the moment when we made it. Says
 * nothing if the message is delivered within LATE_NS.
 */
static void say_age(const json_t *incident, int64_t wall_ns, struct cw_clause *clause)
{
	int64_t found_ns =
		cw_wall_parse(cw_json_str(json_object_get(incident, "times"), "confirmed", ""));
	char how_over[96];

	if (cw_incident_doc_is_over(incident)) {
		struct cw_arg how = arg_text(
			clause, cw_incident_doc_how_over(incident, how_over, sizeof(how_over)));

		if (cw_incident_doc_is_notice(incident))
			cw_say(clause, seen_while_it_lasted, how);
		else
			cw_say(clause, before_delivery, how);
	} else if (found_ns > 0 && wall_ns - found_ns >= LATE_NS) {
		cw_say(clause, was_found_ago,
		       (struct cw_arg){ .kind = CW_ARG_COUNT,
					.count = (uint64_t)(wall_ns - found_ns) /
						 (60 * CW_NS_PER_S) });
	}
}

json_t *cw_incident_doc_as_of(const json_t *incident, int64_t wall_ns)
{
	json_t *doc = json_copy((json_t *)incident); /* json_copy() only reads it */
	struct cw_arena arena = { 0 };
	struct cw_clause summary = { .arena = &arena }, seen = { .arena = &arena };
	int bad = doc ? 0 : -1;

	say_age(incident, wall_ns, &summary);
	if (summary.n || summary.is_incomplete) {
		bad |= read_summary(incident, &seen);
		cw_clause_append(&summary, &seen);
		bad |= summary.is_incomplete;
		bad |= bad ? 0 : cw_said_set(doc, "summary", &summary, CW_SAID_TEXT_MAX);
	}
	if (!bad && summary.n && cw_incident_doc_is_over(incident))
		bad |= json_object_set_new(doc, "severity",
					   json_string(cw_severity_name(CW_SEVERITY_NOTICE)));
	cw_arena_fini(&arena);
	return cw_json_finish(doc, bad);
}

json_t *cw_healthy_doc(const struct cw_snapshot *snap, int64_t watched_ns)
{
	uint64_t collectives = collectives_done(snap);
	double watched_s = (double)watched_ns / 1e9;
	char summary[256];
	json_t *doc = json_object();
	int bad = 0;

	snprintf(summary, sizeof(summary),
		 "%u rank%s on %u node%s watched for %.0f s, %" PRIu64 " collective%s on %u "
		 "communicator%s: no rank is blocked on a call that cannot complete",
		 snap->n_ranks, snap->n_ranks == 1 ? "" : "s", snap->n_nodes,
		 snap->n_nodes == 1 ? "" : "s", watched_s, collectives, collectives == 1 ? "" : "s",
		 snap->n_comms, snap->n_comms == 1 ? "" : "s");
	bad |= json_object_set_new(doc, "schema", json_string("collwatch.healthy/1"));
	bad |= json_object_set_new(doc, "job", cw_json_text(or_empty(snap->job)));
	bad |= json_object_set_new(doc, "ranks", json_integer(snap->n_ranks));
	bad |= json_object_set_new(doc, "nodes", json_integer(snap->n_nodes));
	bad |= json_object_set_new(doc, "comms", json_integer(snap->n_comms));
	bad |= json_object_set_new(doc, "watched_s", json_real(watched_s));
	bad |= json_object_set_new(doc, "collectives", cw_json_u64(collectives));
	bad |= json_object_set_new(doc, "summary", json_string(summary));
	return cw_json_finish(doc, bad);
}
