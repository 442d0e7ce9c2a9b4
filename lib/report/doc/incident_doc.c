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
#include "report/frames.h"
#include "report/json_util.h"
#include "report/nonfinite_inputs.h"
#include "report/process_doc.h"

/*
 * At most this many sides and waits get call stacks. A chain may have thousands of waits, and the
 * document is sent as an alert.
 */
#define STACKS_MAX 8u

/* Returns the user's number of the rank, or -1 if it has none or if the index is out of range. */
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

/* null if this kind of op has no such member */
static json_t *comm_rank_or_null(int32_t comm_rank)
{
	return comm_rank == CW_PEER_NONE ? json_null() : json_integer(comm_rank);
}

/* has_stack: include the call stack if it is known. */
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
	bad |= json_object_set_new(doc, "reason", cw_json_text(culprit->reason));
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
 * The engine makes one list: a cycle for a deadlock, otherwise the chain to the culprit. `cycle`
 * selects one of the two members, and the other one is an empty list.
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
	bad |= json_object_set_new(doc, "reason", cw_json_text(alt->reason));
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
 * Returns the ranks that we know only from the past, because their node has stopped reporting.
 * null: there are none.
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

/* Appends a sentence to the summary, after adding a missing full stop. */
static int add_sentence(json_t *incident, const char *sentence)
{
	const char *before = cw_json_str(incident, "summary", "");
	size_t len = strlen(before);
	char summary[1024];

	snprintf(summary, sizeof(summary), "%s%s %s", before,
		 len && before[len - 1] != '.' ? "." : "", sentence);
	return json_object_set_new(incident, "summary", cw_json_text(summary));
}

/*
 * The advice contains the proposal too. We repeat it in the summary for readers who see only that.
 */
static int add_proposal(json_t *doc, const struct cw_incident_info *info)
{
	if (!info->proposes_serving)
		return 0;
	if (json_object_set_new(doc, "proposed_policy", json_string("serving")) < 0)
		return -1;
	return add_sentence(doc, "The job looks like a server that waits for requests: set "
				 "COLLWATCH_POLICY=serving in its environment.");
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

/*
 * Returns the names of the blind spots, that is of places we cannot see and that may hide
 * the cause.
 */
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
	bad |= json_object_set_new(doc, "ruled_out",
				   text_list((const char *const *)v->ruled_out, v->n_ruled_out));
	bad |= json_object_set_new(doc, "nccl_errors", cw_nccl_errors_doc(snap));
	bad |= json_object_set_new(doc, "nonfinite_inputs", cw_nonfinite_inputs_doc(snap));
	bad |= json_object_set_new(doc, "coverage", coverage_doc(snap));
	bad |= json_object_set_new(doc, "times", times_doc(info));
	bad |= add_timeout(doc, snap);
	bad |= json_object_set_new(doc, "summary", cw_json_text(v->summary));
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

/* A stopped process makes no progress wherever it is; SIGCONT continues it. */
static int note_stopped(json_t *incident, json_t *culprit, const json_t *seen, const char *who)
{
	const json_t *proc = json_object_get(seen, "proc");
	char sentence[80];

	if (!proc || strcmp(cw_json_str(proc, "state", ""), "T") != 0 ||
	    json_object_get(culprit, "stopped"))
		return 0;
	if (json_object_set_new(culprit, "stopped", json_true()) < 0)
		return -1;
	/* The summary may say so already. */
	if (strstr(cw_json_str(incident, "summary", ""), " is stopped by "))
		return 0;
	snprintf(sentence, sizeof(sentence), "%s is stopped by a signal.", who);
	if (add_sentence(incident, sentence) == 0)
		return 0;
	(void)json_object_del(culprit, "stopped");
	return -1;
}

/*
 * Adds the culprit's position to the summary. A rank that never reached a call is stuck at that
 * position, so the position goes into the sentence with "never reached".
 */
static int say_position(json_t *incident, const json_t *seen, const char *where, const char *who)
{
	const char *before = cw_json_str(incident, "summary", ""), *at;
	char place[256], summary[1024];

	at = strcmp(cw_json_str(incident, "class", ""), "never_entered") == 0
		     ? strstr(before, " never reached ")
		     : NULL;
	/*
	 * In "is stopped by SIGSTOP and never reached" the reason is the stop, so the position gets
	 * its own sentence.
	 */
	if (!at || (at - before >= 4 && strncmp(at - 4, " and", 4) == 0)) {
		snprintf(summary, sizeof(summary), "%s is in %s.", who, where);
		return add_sentence(incident, summary);
	}
	snprintf(summary, sizeof(summary), "%.*s is stuck in %s and%s", (int)(at - before), before,
		 frame_place(seen, place, sizeof(place)), at);
	return json_object_set_new(incident, "summary", cw_json_text(summary));
}

/*
 * Adds both "sits_in" and the sentence, or neither of them. If "sits_in" is present, a later call
 * does not add the sentence again.
 */
static int note_position(json_t *incident, bool is_said, json_t *culprit, const json_t *seen,
			 const char *who)
{
	char where[256];

	if (!*cw_evidence_position(seen, where, sizeof(where)))
		return 0;
	if (json_object_set_new(culprit, "sits_in", cw_json_text(where)) < 0)
		return -1;
	if (!is_said || say_position(incident, seen, where, who) == 0)
		return 0;
	(void)json_object_del(culprit, "sits_in");
	return -1;
}

int cw_incident_doc_add_positions(json_t *incident, const json_t *evidence)
{
	json_t *culprits = json_object_get(incident, "culprits"), *culprit;
	char who[40], kernel[512];
	size_t i;
	int bad = 0;

	json_array_foreach (culprits, i, culprit) {
		const json_t *seen = cw_incident_doc_evidence_of(culprit, evidence);

		if (seen && *cw_evidence_kernel(seen, kernel, sizeof(kernel)))
			bad |= json_object_set_new(culprit, "kernel", cw_json_text(kernel));
		snprintf(who, sizeof(who), "Rank %" JSON_INTEGER_FORMAT,
			 cw_json_int(culprit, "rank", -1));
		if (seen && json_array_size(culprits) == 1)
			bad |= note_stopped(incident, culprit, seen, who);
		if (seen && !json_object_get(culprit, "sits_in"))
			bad |= note_position(incident, json_array_size(culprits) == 1, culprit,
					     seen, who);
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
#define SUMMARY_BYTES 2048

/*
 * The summary uses the present tense of the moment when it was made. For a later message we say how
 * old it is.
 */
static bool format_as_of(const json_t *incident, int64_t wall_ns, char *buf, size_t len)
{
	const char *summary = cw_json_str(incident, "summary", "");
	int64_t found_ns =
		cw_wall_parse(cw_json_str(json_object_get(incident, "times"), "confirmed", ""));
	char how[96];

	if (cw_incident_doc_is_over(incident)) {
		(void)snprintf(buf, len, "%s%s. What was seen while it lasted: %s",
			       cw_incident_doc_how_over(incident, how, sizeof(how)),
			       cw_incident_doc_is_notice(incident)
				       ? ""
				       : ", before its alert was delivered",
			       summary);
		return true;
	}
	if (found_ns <= 0 || wall_ns - found_ns < LATE_NS)
		return false;
	(void)snprintf(buf, len, "found %" PRId64 " min ago. What was seen then: %s",
		       (wall_ns - found_ns) / (60 * CW_NS_PER_S), summary);
	return true;
}

json_t *cw_incident_doc_as_of(const json_t *incident, int64_t wall_ns)
{
	json_t *doc = json_copy((json_t *)incident); /* json_copy() only reads it */
	char summary[SUMMARY_BYTES];
	int bad = doc ? 0 : -1;

	if (!doc || !format_as_of(incident, wall_ns, summary, sizeof(summary)))
		return doc;
	bad |= json_object_set_new(doc, "summary", cw_json_text(summary));
	if (cw_incident_doc_is_over(incident))
		bad |= json_object_set_new(doc, "severity",
					   json_string(cw_severity_name(CW_SEVERITY_NOTICE)));
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
