/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/incident_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "model/cause.h"
#include "model/rankset.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/facts_builder.h"
#include "report/doc/incident_facts.h"
#include "report/doc/nccl_errors.h"
#include "report/doc/said_doc.h"
#include "report/frames.h"
#include "report/json_util.h"
#include "report/nonfinite_inputs.h"
#include "say/english.h"

/*
 * We add call stacks to at most this many sides and waits. A chain may have thousands of waits, and
 * the document is sent as an alert.
 */
#define STACKS_MAX 8u

/* The input and the collected facts of a document. */
struct builder {
	const struct cw_snapshot *snap;
	const struct cw_verdict *v;
	struct cw_facts_builder facts;
};

/* Returns the user's number of the rank. -1: the rank has none, or the index is out of range. */
static int32_t label_of(const struct cw_snapshot *snap, uint32_t rank)
{
	return rank < snap->n_ranks ? snap->ranks[rank].rank : -1;
}

static const char *label_set(struct builder *b, const uint32_t *ranks, uint32_t n)
{
	_cleanup_(freep) int32_t *labels = calloc(n ? n : 1, sizeof(*labels));

	if (!labels) {
		b->facts.bad = -1;
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		labels[i] = label_of(b->snap, ranks[i]);
	return cw_facts_set(&b->facts, labels, n);
}

/* Splits a call stack into its lines. */
static void add_stack(struct builder *b, const char *stack, struct cw_incident_call *call)
{
	char *text = cw_arena_strdup(b->facts.arena, stack), *rest;
	uint32_t n = 1;

	for (const char *p = stack; (p = strchr(p, '\n')); p++)
		n++;
	call->stack = cw_facts_list(&b->facts, const char *, n);
	if (!text || !call->stack) {
		b->facts.bad = -1;
		return;
	}
	for (rest = text; rest;)
		call->stack[call->n_stack++] = strsep(&rest, "\n");
}

/* has_stack: include the call stack if it is known. */
static struct cw_incident_call *call_of(struct builder *b, const struct cw_op *op, bool has_stack)
{
	const char *stack = has_stack ? cw_snapshot_stack(b->snap, op) : NULL;
	struct cw_incident_call *call = cw_facts_one(&b->facts, struct cw_incident_call);

	if (!call)
		return NULL;
	*call = (struct cw_incident_call){
		.kind = cw_facts_named(op->kind, cw_op_kind_name),
		.dtype = cw_facts_named(op->dtype, cw_dtype_name),
		.count = op->count,
		.root = op->root,
		.peer = op->peer,
	};
	if (op->redop != CW_REDOP_NONE)
		call->redop = cw_facts_named(op->redop, cw_redop_name);
	if (stack)
		add_stack(b, stack, call);
	return call;
}

static void add_culprit(struct builder *b, uint32_t index, const struct cw_clause *said,
			struct cw_incident_culprit *to)
{
	cw_facts_culprit(b->snap, index, to);
	to->reason = cw_facts_sentence(&b->facts, said, CW_REASON_TEXT_MAX);
}

static void add_culprits(struct builder *b, struct cw_incident_facts *to)
{
	to->culprits = cw_facts_list(&b->facts, struct cw_incident_culprit, b->v->n_culprits);
	for (uint32_t i = 0; to->culprits && i < b->v->n_culprits; i++)
		add_culprit(b, b->v->culprits[i].rank, &b->v->culprits[i].said,
			    &to->culprits[to->n_culprits++]);
}

static const char *host_of(const struct builder *b, uint32_t rank)
{
	uint32_t node = rank < b->snap->n_ranks ? b->snap->ranks[rank].node : CW_SNAP_NONE;

	return node < b->snap->n_nodes && b->snap->nodes[node].name ? b->snap->nodes[node].name
								    : "";
}

static struct cw_incident_link *link_of(struct builder *b)
{
	const struct cw_link *l = &b->v->link;
	struct cw_incident_link *link =
		l->is_set ? cw_facts_one(&b->facts, struct cw_incident_link) : NULL;

	if (!link)
		return NULL;
	*link = (struct cw_incident_link){
		.sender = label_of(b->snap, l->sender),
		.sender_host = host_of(b, l->sender),
		.receiver = label_of(b->snap, l->receiver),
		.receiver_host = host_of(b, l->receiver),
		.channel = l->channel,
		.first = l->side == CW_LINK_SIDE_SENDER     ? "sender"
			 : l->side == CW_LINK_SIDE_RECEIVER ? "receiver"
							    : NULL,
		.steps = l->steps,
		.handed = l->handed,
		.confirmed = l->confirmed,
		.received = l->received,
		.step_s = (double)l->held_ns / 1e9,
		.bytes_per_s = l->bytes_per_s,
	};
	return link;
}

/* Lists the nodes of the communicator's members. Recordings do not name their nodes. */
static void add_nodes(struct builder *b, const struct cw_snap_comm *comm,
		      struct cw_incident_where *where)
{
	const struct cw_snapshot *snap = b->snap;
	bool *has_member = cw_facts_list(&b->facts, bool, snap->n_nodes);

	where->nodes = cw_facts_list(&b->facts, const char *, snap->n_nodes);
	if (!has_member || !where->nodes)
		return;
	for (uint32_t m = 0; m < comm->nranks; m++) {
		uint32_t rank = comm->members[m].rank;

		if (rank < snap->n_ranks && snap->ranks[rank].node < snap->n_nodes)
			has_member[snap->ranks[rank].node] = true;
	}
	for (uint32_t i = 0; i < snap->n_nodes; i++)
		if (has_member[i] && snap->nodes[i].name && *snap->nodes[i].name)
			where->nodes[where->n_nodes++] = snap->nodes[i].name;
}

static struct cw_incident_where *where_of(struct builder *b)
{
	const struct cw_verdict *v = b->v;
	const struct cw_snap_comm *comm;
	struct cw_incident_where *where;

	if (v->comm >= b->snap->n_comms)
		return NULL;
	comm = &b->snap->comms[v->comm];
	where = cw_facts_one(&b->facts, struct cw_incident_where);
	if (!where)
		return NULL;
	*where = (struct cw_incident_where){
		.comm = comm->id,
		.comm_name = comm->name,
		.coll_seq = v->coll_seq,
		.after_seq = v->verdict_class == CW_CLASS_MISMATCH && !v->n_sides
				     ? v->after_seq
				     : CW_INCIDENT_NO_SEQ,
		.sides = cw_facts_list(&b->facts, struct cw_incident_side, v->n_sides),
	};
	for (uint32_t i = 0; where->sides && i < v->n_sides; i++)
		where->sides[where->n_sides++] = (struct cw_incident_side){
			.ranks = label_set(b, v->sides[i].ranks, v->sides[i].n_ranks),
			.op = v->sides[i].has_op ? call_of(b, &v->sides[i].op, i < STACKS_MAX)
						 : NULL,
		};
	/* In all other classes the fault is where the culprits are. */
	if (v->verdict_class == CW_CLASS_IN_COLLECTIVE)
		add_nodes(b, comm, where);
	where->link = link_of(b);
	return where;
}

/*
 * The engine makes one list of waits: a cycle for a deadlock, otherwise the chain to the culprit.
 * The document has a member for each. The member that does not apply is empty.
 */
static void add_waits(struct builder *b, struct cw_incident_facts *to)
{
	const struct cw_verdict *v = b->v;
	struct cw_incident_wait *waits =
		cw_facts_list(&b->facts, struct cw_incident_wait, v->n_chain);

	for (uint32_t i = 0; waits && i < v->n_chain; i++) {
		const struct cw_wait *wait = &v->chain[i];
		bool has_comm = wait->comm < b->snap->n_comms;

		waits[i] = (struct cw_incident_wait){
			.rank = label_of(b->snap, wait->rank),
			.comm = has_comm ? b->snap->comms[wait->comm].id : 0,
			.comm_name = has_comm ? b->snap->comms[wait->comm].name : "",
			.coll_seq = wait->op.coll_seq,
			.op = call_of(b, &wait->op, i < STACKS_MAX),
			.waits_for = label_of(b->snap, wait->waits_for),
		};
	}
	if (v->verdict_class == CW_CLASS_DEADLOCK) {
		to->cycle = waits;
		to->n_cycle = v->n_chain;
	} else {
		to->chain = waits;
		to->n_chain = v->n_chain;
	}
}

static void add_alternative(struct builder *b, const struct cw_alternative *from,
			    struct cw_incident_alternative *to)
{
	static const struct cw_clause nothing;

	*to = (struct cw_incident_alternative){
		.verdict_class = cw_facts_named(from->verdict_class, cw_class_name),
		.culprits = cw_facts_list(&b->facts, struct cw_incident_culprit, from->n_culprits),
		.probability = from->probability,
		.reason = cw_facts_sentence(&b->facts, &from->said, CW_REASON_TEXT_MAX),
	};
	for (uint32_t i = 0; to->culprits && i < from->n_culprits; i++)
		add_culprit(b, from->culprits[i], &nothing, &to->culprits[to->n_culprits++]);
}

static void add_alternatives(struct builder *b, struct cw_incident_facts *to)
{
	uint32_t n = b->v->n_alternatives;

	to->alternatives = cw_facts_list(&b->facts, struct cw_incident_alternative, n);
	for (uint32_t i = 0; to->alternatives && i < n; i++)
		add_alternative(b, &b->v->alternatives[i], &to->alternatives[to->n_alternatives++]);
}

static struct cw_incident_sentence *sentences(struct builder *b, const struct cw_clause *said,
					      uint32_t n, uint32_t *ret_n)
{
	struct cw_incident_sentence *list =
		cw_facts_list(&b->facts, struct cw_incident_sentence, n);

	*ret_n = list ? n : 0;
	for (uint32_t i = 0; i < *ret_n; i++)
		list[i] = cw_facts_sentence(&b->facts, &said[i], CW_REASON_TEXT_MAX);
	return list;
}

static void add_known_hangs(struct builder *b, struct cw_incident_facts *to)
{
	uint32_t n = b->v->n_known_hangs;

	to->known_hangs = cw_facts_list(&b->facts, struct cw_incident_known_hang, n);
	for (uint32_t i = 0; to->known_hangs && i < n; i++)
		to->known_hangs[to->n_known_hangs++] = (struct cw_incident_known_hang){
			.name = b->v->known_hangs[i].name,
			.fixed_in = b->v->known_hangs[i].fixed_in,
		};
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
static const char *missing_ranks(struct builder *b)
{
	const struct cw_snapshot *snap = b->snap;
	uint32_t n = snap->ranks_expected, n_missing = 0;
	_cleanup_(freep) bool *seen = NULL;
	_cleanup_(freep) int32_t *missing = NULL;

	if (n > CW_SNAP_MAX_RANKS)
		n = CW_SNAP_MAX_RANKS;
	seen = calloc(n ? n : 1, sizeof(*seen));
	missing = calloc(n ? n : 1, sizeof(*missing));
	if (!seen || !missing) {
		b->facts.bad = -1;
		return NULL;
	}
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		int32_t label = snap->ranks[i].rank;

		if (label >= 0 && (uint32_t)label < n && !is_known_by_name_only(&snap->ranks[i]))
			seen[label] = true;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!seen[i])
			missing[n_missing++] = (int32_t)i;
	return cw_facts_set(&b->facts, missing, n_missing);
}

/*
 * Returns the ranks whose node has stopped reporting, so that we know only their past. NULL: there
 * are none.
 */
static struct cw_incident_last_known *last_known(struct builder *b)
{
	const struct cw_snapshot *snap = b->snap;
	_cleanup_(freep) uint32_t *ranks = calloc((size_t)snap->n_ranks + 1, sizeof(*ranks));
	struct cw_incident_last_known *known;
	int64_t since_ns = snap->now_ns;
	uint32_t n = 0;

	if (!ranks) {
		b->facts.bad = -1;
		return NULL;
	}
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_node *node = &snap->nodes[snap->ranks[i].node];

		if (node->state == CW_NODE_REPORTING)
			continue;
		ranks[n++] = i;
		if (node->last_digest_ns < since_ns)
			since_ns = node->last_digest_ns;
	}
	known = n ? cw_facts_one(&b->facts, struct cw_incident_last_known) : NULL;
	if (known)
		*known = (struct cw_incident_last_known){
			.ranks = label_set(b, ranks, n),
			.count = n,
			.age_s = (double)cw_bounded_ns(snap->now_ns - since_ns) / 1e9,
		};
	return known;
}

static struct cw_incident_coverage *coverage_of(struct builder *b)
{
	struct cw_incident_coverage *coverage =
		cw_facts_one(&b->facts, struct cw_incident_coverage);

	if (coverage)
		*coverage = (struct cw_incident_coverage){
			.ranks_expected = b->snap->ranks_expected,
			.ranks_seen = ranks_seen(b->snap),
			.last_known = last_known(b),
			.missing = missing_ranks(b),
			.untracked = b->snap->untracked,
			.notes = (const char **)b->snap->notes,
			.n_notes = b->snap->n_notes,
		};
	return coverage;
}

static struct cw_incident_times *times_of(struct builder *b, const struct cw_incident_info *info)
{
	struct cw_incident_times *times = cw_facts_one(&b->facts, struct cw_incident_times);

	if (times)
		*times = (struct cw_incident_times){
			.last_progress_wall_ns = info->last_progress_wall_ns,
			.stall_wall_ns = info->stall_wall_ns,
			.confirmed_wall_ns = info->confirmed_wall_ns,
			.resolved_wall_ns = info->resolved_wall_ns,
		};
	return times;
}

/* Returns the time-out of the job's own watchdog. NULL: it is not known. */
static struct cw_incident_timeout *timeout_of(struct builder *b)
{
	const struct cw_snap_rank *of = cw_snapshot_job_timeout(b->snap);
	struct cw_incident_timeout *timeout =
		of ? cw_facts_one(&b->facts, struct cw_incident_timeout) : NULL;

	if (timeout)
		*timeout = (struct cw_incident_timeout){
			.seconds = (double)of->job_timeout_ns / 1e9,
			.is_assumed = (of->flags & CW_RANKF_TIMEOUT_ASSUMED) != 0,
			.set_by = of->job_timeout_source,
		};
	return timeout;
}

static struct cw_incident_victims *victims_of(struct builder *b)
{
	struct cw_incident_victims *victims = cw_facts_one(&b->facts, struct cw_incident_victims);

	if (victims)
		*victims = (struct cw_incident_victims){
			.count = b->v->n_victims,
			.ranks = label_set(b, b->v->victims, b->v->n_victims),
		};
	return victims;
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
 * Sets the summary. A proposal to watch the job as a server is a part of it. The advice contains
 * the proposal too, but some readers see only the summary.
 */
static void add_summary(struct builder *b, bool proposes_serving, struct cw_incident_facts *to)
{
	struct cw_clause summary = { .arena = b->facts.arena };

	if (!proposes_serving) {
		to->summary = cw_facts_sentence(&b->facts, &b->v->said, CW_VERDICT_TEXT_MAX);
		return;
	}
	to->proposed_policy = CW_INCIDENT_POLICY_SERVING;
	cw_clause_append(&summary, &b->v->said);
	end_sentence(&summary);
	cw_say(&summary, looks_like_server);
	b->facts.bad |= summary.is_incomplete;
	to->summary = cw_facts_sentence(&b->facts, &summary, SUMMARY_BYTES);
}

json_t *cw_incident_doc(const struct cw_snapshot *snap, const struct cw_verdict *v,
			const struct cw_incident_info *info)
{
	struct cw_arena arena = { 0 };
	struct builder b = { .snap = snap, .v = v, .facts = { .arena = &arena } };
	struct cw_incident_facts facts = {
		.schema = "collwatch.incident/1",
		.id = cw_fact_text(info->id),
		.job = cw_fact_text(snap->job),
		.group = cw_fact_text(snap->group),
		.verdict_class = cw_facts_named(v->verdict_class, cw_class_name),
		.detail = cw_facts_named(v->detail, cw_detail_name),
		.confidence = cw_facts_named(info->confidence, cw_confidence_name),
		.blind_spots = v->blind_spots,
		.hang = cw_facts_named(info->hang, cw_hang_name),
		.severity = cw_facts_named(info->severity, cw_severity_name),
		.victims = victims_of(&b),
		.where = where_of(&b),
		.coverage = coverage_of(&b),
		.times = times_of(&b, info),
		.job_timeout = timeout_of(&b),
		.leader = cw_fact_text(info->leader),
		.bundle = info->bundle,
		.uid = -1,
	};
	json_t *doc;

	add_culprits(&b, &facts);
	add_waits(&b, &facts);
	add_alternatives(&b, &facts);
	facts.ruled_out = sentences(&b, v->ruled_out_said, v->n_ruled_out, &facts.n_ruled_out);
	add_known_hangs(&b, &facts);
	facts.also = sentences(&b, v->also_said, v->n_also, &facts.n_also);
	b.facts.bad |= cw_nccl_errors_collect(snap, &arena, &facts);
	b.facts.bad |= cw_nonfinite_inputs_collect(snap, &arena, &facts);
	add_summary(&b, info->proposes_serving, &facts);
	doc = b.facts.bad ? NULL : cw_incident_facts_write(&facts);
	cw_arena_fini(&arena);
	return doc;
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

	if (cw_frame_crash(seen, place, sizeof(place))) {
		end_sentence(summary);
		cw_say(summary, crashed_in, who, arg_text(summary, where));
		return;
	}
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
 * Adds the evidence about the only culprit to the summary. Each fact is added once: `is_stopped`
 * and `sits_in` show that an earlier call has added it. Returns 0, or -1 if out of memory; then
 * nothing is added.
 */
static int note_culprit(struct cw_incident_facts *incident, struct cw_arena *arena,
			struct cw_incident_culprit *culprit, const json_t *seen)
{
	struct cw_clause summary = { .arena = arena };
	int32_t *label = cw_arena_memdup(arena, &culprit->rank, 1, sizeof(culprit->rank));
	struct cw_arg who = { .kind = CW_ARG_RANKS, .ranks = { .labels = label, .n = 1 } };
	bool is_stopped = is_state_stopped(seen) && !culprit->is_stopped;
	char where[256] = "", text[SUMMARY_BYTES];
	const char *said, *sits_in;

	if (!culprit->sits_in)
		(void)cw_evidence_position(seen, where, sizeof(where));
	if (!is_stopped && !*where)
		return 0;
	if (incident->summary.said.n)
		cw_clause_append(&summary, &incident->summary.said);
	else
		cw_say(&summary, text, arg_text(&summary, cw_fact_text(incident->summary.text)));
	/* A stopped process makes no progress wherever it is; SIGCONT continues it. */
	if (is_stopped && !says_halt(&summary)) {
		end_sentence(&summary);
		cw_say(&summary, is_stopped, who);
	}
	if (*where)
		say_position(&summary, seen, where, who);
	said = cw_arena_strdup(arena, cw_say_text(&summary, text, sizeof(text)));
	sits_in = cw_arena_strdup(arena, where);
	if (!label || !said || !sits_in || summary.is_incomplete)
		return -1;
	culprit->is_stopped = culprit->is_stopped || is_stopped;
	if (*where)
		culprit->sits_in = sits_in;
	incident->summary = (struct cw_incident_sentence){ said, summary };
	return 0;
}

/* Sets a text, unless the fact has it already. Returns 0, or -1 if out of memory. */
static int set_text(struct cw_arena *arena, const char **fact, const char *text)
{
	const char *copy;

	if (!*text || (*fact && strcmp(*fact, text) == 0))
		return 0;
	copy = cw_arena_strdup(arena, text);
	if (!copy)
		return -1;
	*fact = copy;
	return 0;
}

/* Adds a position to one of several culprits. The summary then states no positions. */
static int note_position(struct cw_arena *arena, struct cw_incident_culprit *culprit,
			 const json_t *seen)
{
	char where[256];

	if (culprit->sits_in)
		return 0;
	return set_text(arena, &culprit->sits_in, cw_evidence_position(seen, where, sizeof(where)));
}

#define COPY_SEEN(form, type, name, key, ...)                                                      \
	bad |= set_text(arena, &culprit->name, cw_json_str(proc, key, ""));

/* Adds the facts that the evidence states in the same words. */
static int add_seen(struct cw_arena *arena, struct cw_incident_culprit *culprit, const json_t *seen)
{
	const json_t *proc = json_object_get(seen, "proc");
	int bad = 0;

	CW_INCIDENT_SEEN_FACTS(COPY_SEEN)
	return bad;
}

/* We show at most this many frames of a crash. */
#define CRASH_FRAMES_MAX 16u

/* Adds the stack of a crash, unless the fact has it already. Returns 0, or -1 if out of memory. */
static int add_crash(struct cw_arena *arena, struct cw_incident_culprit *culprit,
		     const json_t *seen)
{
	bool is_python;
	const json_t *frames = cw_frame_crash_frames(seen, &is_python), *frame;
	char text[256];
	size_t i;

	if (culprit->n_crash_stack || json_array_size(frames) == 0)
		return 0;
	culprit->crash_stack = cw_arena_new_array(arena, const char *, CRASH_FRAMES_MAX);
	if (!culprit->crash_stack)
		return -1;
	json_array_foreach (frames, i, frame) {
		const char *copy;

		if (culprit->n_crash_stack == CRASH_FRAMES_MAX)
			break;
		if (i > 0 && !is_python && frame_is_folded_native(frame))
			continue;
		copy = cw_arena_strdup(arena, cw_frame_text(frame, is_python, text, sizeof(text)));
		if (!copy)
			return -1;
		culprit->crash_stack[culprit->n_crash_stack++] = copy;
	}
	return 0;
}

int cw_incident_facts_add_evidence(struct cw_incident_facts *incident, struct cw_arena *arena,
				   const json_t *evidence)
{
	char kernel[512];
	int bad = 0;

	for (uint32_t i = 0; i < incident->n_culprits; i++) {
		struct cw_incident_culprit *culprit = &incident->culprits[i];
		const json_t *seen = doc_evidence_of(culprit, evidence);

		if (!seen)
			continue;
		bad |= set_text(arena, &culprit->kernel,
				cw_evidence_kernel(seen, kernel, sizeof(kernel)));
		bad |= add_seen(arena, culprit, seen);
		bad |= add_crash(arena, culprit, seen);
		bad |= incident->n_culprits == 1 ? note_culprit(incident, arena, culprit, seen)
						 : note_position(arena, culprit, seen);
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
	bad |= json_object_set_new(doc, "job", cw_json_text(cw_fact_text(snap->job)));
	bad |= json_object_set_new(doc, "ranks", json_integer(snap->n_ranks));
	bad |= json_object_set_new(doc, "nodes", json_integer(snap->n_nodes));
	bad |= json_object_set_new(doc, "comms", json_integer(snap->n_comms));
	bad |= json_object_set_new(doc, "watched_s", json_real(watched_s));
	bad |= json_object_set_new(doc, "collectives", cw_json_u64(collectives));
	bad |= json_object_set_new(doc, "summary", json_string(summary));
	return cw_json_finish(doc, bad);
}
