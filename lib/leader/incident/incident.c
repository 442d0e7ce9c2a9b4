/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events move an incident through the states of incident_state.h. When it enters a state, the
 * actions of that state run. Evaluations bring verdicts, messages bring evidence and objections,
 * and ticks bring deadlines.
 *
 * The evaluation that confirms the incident creates the documents. Only an evaluation that knows
 * more replaces them. We write the bundle when we alert, and again whenever we have more stacks, a
 * complete snapshot text, or the end of the incident.
 */
#include "leader/incident/incident.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "identity/job_id.h"
#include "leader/incident/earlier_stacks.h"
#include "leader/incident/evidence_set.h"
#include "leader/incident/incident_journal.h"
#include "leader/incident/incident_part.h"
#include "leader/incident/stack_collection.h"
#include "proto/messages.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/doc/snapshot_text.h"

/*
 * The minimum time between two writes of a bundle while stacks arrive. With the snapshot of a large
 * job a bundle takes some MiB, so we do not write it for each rank's answer.
 */
#define COLLECTION_WRITE_NS (5 * CW_NS_PER_S)

/*
 * The maximum number of ranks and memberships that we convert to text in one iteration of the loop.
 * Each takes 7 us.
 */
#define ITERATION_PIECES 2048u

/* If wrong data block a rank, they do so within this time. */
#define WRONG_DATA_HOLDS_NS (60 * CW_NS_PER_S)

struct cw_objector {
	char node[CW_NODE_NAME_MAX + 1];
	char reason[96];
};

struct cw_incident {
	struct cw_incident_config config;
	struct cw_job_id job;
	uint32_t state;
	/* Key of the incident's verdict. */
	struct cw_verdict_key key;
	char id[CW_INCIDENT_ID_LEN];
	/* From the decision, or from a later evaluation that knew more; the arena owns them. */
	struct cw_incident_facts facts;
	struct cw_arena arena;
	bool has_facts;
	/* Memory for a document ran out. The next tick writes the bundle, or sends the notice. */
	bool owes_bundle, owes_notice;
	/* Text of the snapshot of these facts; NULL = none yet. */
	json_t *snapshot;
	/* Text of a snapshot that is not complete yet; NULL = none. */
	struct cw_snapshot_text *text;
	uint32_t verdict_class;
	enum cw_severity severity; /* severity in the documents */
	bool is_proof;
	/* A mismatch whose call is unknown. */
	bool lacks_call;
	/* A mismatch whose odd side is unknown. */
	bool is_tie;
	/* Some rank waits because of the incident. */
	bool is_waited;
	/* Number of the call for the documents. `key` has no call if no rank waits. */
	uint64_t coll_seq;
	int64_t lasted_ns;      /* duration from the first wait to its end; 0 = ongoing */
	const char *suppressed; /* static text; NULL = not suppressed */
	/* The times that we found first. */
	struct cw_incident_times times;
	bool has_times;
	/* We continue an earlier bundle, and only change the incident in it. */
	bool is_kept;
	/* The earlier bundle stated that its incident was over. */
	bool was_closed;
	int64_t confirmed_ns;
	/* Deadlines on the awake clock; 0 = not running. */
	int64_t clear_ns, evidence_ns, retry_ns, python_ns;
	int64_t announced_held_ns; /* how long this daemon had been held up at the announcement */
	/* Number of objections from nodes without a part in leading the job. */
	unsigned n_deferred;
	bool is_overruling;
	struct cw_objector objectors[CW_INCIDENT_MAX_OBJECTORS];
	unsigned n_objectors;
	struct cw_evidence_set evidence;
	struct cw_stack_collection *collection; /* NULL = none, or out of memory */
	/* Number of answers that are in the bundle. */
	uint32_t collection_written;
	/* No write before this time; awake clock. */
	int64_t collection_due_ns;
	struct cw_earlier_stacks earlier;
	uint32_t earlier_written; /* number of its readings that are in the facts */
};

static void on_evidence(const char *node, const struct cw_message *reply, void *user);

int cw_incident_new(const struct cw_incident_config *config, struct cw_incident **ret)
{
	struct cw_incident *inc = calloc(1, sizeof(*inc));

	if (!inc)
		return -ENOMEM;
	inc->config = *config;
	if (cw_job_id_make(config->uid, config->job, &inc->job) < 0) {
		free(inc);
		return -ENOMEM;
	}
	cw_earlier_stacks_init(&inc->earlier, &(struct cw_earlier_stacks_config){
						      .clock = config->clock,
						      .effects = config->effects,
						      .job = &inc->job,
					      });
	*ret = inc;
	return 0;
}

/*
 * Clears all facts about the incident, except for the state, which the caller sets, and the stacks
 * of the seconds before.
 */
static void forget_facts(struct cw_incident *inc)
{
	inc->config.effects->cancel(inc->config.effects->user, inc);
	cw_evidence_set_fini(&inc->evidence);
	inc->collection = cw_stack_collection_free(inc->collection);
	cw_arena_fini(&inc->arena);
	inc->facts = (struct cw_incident_facts){ 0 };
	inc->has_facts = inc->has_times = inc->owes_bundle = inc->owes_notice = false;
	json_decref(inc->snapshot);
	inc->snapshot = NULL;
	inc->is_kept = inc->was_closed = false;
	inc->text = cw_snapshot_text_free(inc->text);
	inc->id[0] = '\0';
	inc->suppressed = NULL;
	inc->key = (struct cw_verdict_key){ 0 };
	inc->clear_ns = inc->evidence_ns = inc->retry_ns = inc->python_ns = 0;
	inc->lasted_ns = 0;
	inc->n_deferred = inc->n_objectors = 0;
	inc->is_overruling = false;
	inc->earlier_written = 0;
}

static void forget(struct cw_incident *inc)
{
	forget_facts(inc);
	cw_earlier_stacks_reset(&inc->earlier);
}

struct cw_incident *cw_incident_free(struct cw_incident *inc)
{
	if (!inc)
		return NULL;
	forget(inc);
	free(inc);
	return NULL;
}

unsigned cw_incident_state(const struct cw_incident *inc)
{
	return inc->state;
}

enum cw_severity cw_incident_severity(const struct cw_incident *inc)
{
	return inc->severity;
}

const char *cw_incident_suppressed(const struct cw_incident *inc)
{
	return inc->suppressed;
}

const char *cw_incident_id(const struct cw_incident *inc)
{
	return inc->id;
}

bool cw_incident_is_open(const struct cw_incident *inc)
{
	return inc->state >= CW_INCIDENT_NOTED && inc->state <= CW_INCIDENT_OBJECTED;
}

bool cw_incident_is_noted(const struct cw_incident *inc)
{
	return inc->state == CW_INCIDENT_NOTED;
}

const struct cw_verdict_key *cw_incident_key(const struct cw_incident *inc)
{
	return &inc->key;
}

void cw_incident_move(struct cw_incident *inc, const struct cw_verdict_key *key)
{
	inc->key = *key;
}

/* ---- documents and bundle ---- */

static int64_t wall_of(const struct cw_snapshot *snap, int64_t ns)
{
	return ns && snap->wall_ns ? snap->wall_ns - (snap->now_ns - ns) : 0;
}

/*
 * Returns the start of the first member's process. It distinguishes two runs that use one constant
 * unique id.
 */
static uint64_t start_of(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	const struct cw_snap_comm *comm;

	if (v->comm == CW_SNAP_NONE)
		return 0;
	comm = &snap->comms[v->comm];
	for (uint32_t i = 0; i < comm->nranks; i++)
		if (comm->members[i].rank != CW_SNAP_NONE)
			return snap->ranks[comm->members[i].rank].start_ticks;
	return 0;
}

/*
 * Returns the first call that a missing rank has not made. The waiting ranks may be in a later
 * call. When their parts of that call are done, they may be in a still later one. The first missed
 * call stays the same in each case, also for a leader that starts in between.
 */
static uint64_t first_missed(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	const struct cw_snap_comm *comm = &snap->comms[v->comm];
	uint64_t first = v->coll_seq;

	for (uint32_t i = 0; i < v->n_culprits; i++)
		for (uint32_t k = 0; k < comm->nranks; k++) {
			const struct cw_snap_member *m = &comm->members[k];

			if (m->rank == v->culprits[i].rank && (m->known & CW_KNOWN_ENTERED) &&
			    m->coll_entered + 1 < first)
				first = m->coll_entered + 1;
		}
	return first;
}

/*
 * Makes the subject of a death. The dead process identifies it. A death is one incident, no matter
 * how many calls wait for the rank. A new leader may first see ranks that wait in another call.
 */
static struct cw_incident_matter death_of(const struct cw_incident *inc,
					  const struct cw_snapshot *snap, uint32_t rank)
{
	const struct cw_snap_rank *r = &snap->ranks[rank];

	return (struct cw_incident_matter){
		.uid = inc->config.uid,
		.job = inc->config.job,
		.key = { .comm_id = (uint64_t)(int64_t)r->rank,
			 .instance = (uint32_t)r->pid,
			 .seq = CW_INCIDENT_DEATH_SEQ,
			 .is_set = true },
		.start_ticks = r->start_ticks,
	};
}

static bool was_alerted(const struct cw_incident *inc, const char *id)
{
	const struct cw_incident_due due = { .id = id,
					     .job = inc->config.job,
					     .uid = inc->config.uid };

	return inc->config.effects->was_sent(inc->config.effects->user, &due);
}

/*
 * If an alert with the id of `matter` was sent, the incident takes that id. Returns 0 or -ENOMEM.
 */
static int take_alerted_id(struct cw_incident *inc, const struct cw_incident_matter *matter)
{
	char id[CW_INCIDENT_ID_LEN];
	int r = cw_incident_id_make(matter, id);

	if (r == 0 && was_alerted(inc, id))
		memcpy(inc->id, id, sizeof(id));
	return r;
}

static bool is_wrong_size(const struct cw_verdict *v)
{
	return v->verdict_class == CW_CLASS_P2P_UNMATCHED && v->detail == CW_DETAIL_SIZE;
}

/*
 * True if the earlier incident with this id was about this call. Otherwise it was about another
 * mismatched call on the communicator. The earlier bundle names its call. That bundle is on the
 * node that alerted; on other nodes we go by the id.
 */
static bool is_of_call(const struct cw_incident *inc, const struct cw_verdict *v)
{
	const struct cw_incident_due due = { .id = inc->id,
					     .job = inc->config.job,
					     .uid = inc->config.uid };
	const struct cw_leader_effects *e = inc->config.effects;
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };
	bool is_whole;
	json_t *doc = e->load_incident ? e->load_incident(e->user, &due, &is_whole) : NULL;
	bool is_same = !doc || cw_incident_facts_read(doc, &arena, &facts, NULL, NULL) < 0 ||
		       !facts.where || !facts.where->coll_seq ||
		       facts.where->coll_seq == v->coll_seq;

	cw_arena_fini(&arena);
	json_decref(doc);
	return is_same;
}

/*
 * If we sent an alert about this mismatch under its other key, the incident takes that id. A
 * mismatch has two keys: one while no rank waits, and one with its call while ranks wait. The
 * daemon may have died between the two. Returns 0 or -ENOMEM.
 */
static int take_alerted_mismatch(struct cw_incident *inc, const struct cw_verdict *v,
				 const struct cw_incident_matter *by_call)
{
	struct cw_incident_matter other = *by_call;
	char id[CW_INCIDENT_ID_LEN];
	int r;

	if (!v->coll_seq)
		return 0;
	other.key.is_waited = cw_verdict_is_silent(v);
	other.key.seq = other.key.is_waited ? v->coll_seq : 0;
	memcpy(id, inc->id, sizeof(id));
	r = take_alerted_id(inc, &other);
	if (r == 0 && !other.key.is_waited && !is_of_call(inc, v))
		memcpy(inc->id, id, sizeof(id));
	return r;
}

/*
 * Finds the id under which a previous leader may have alerted about the same fault. These are the
 * cases:
 *
 *  - a death, if that leader knew other dead ranks or had another verdict;
 *  - messages of different sizes, before any rank waited;
 *  - a mismatched call, before a rank waited in it, or while a rank waited that has moved on since.
 *
 * Returns 0 or -ENOMEM.
 */
static int find_alerted_id(struct cw_incident *inc, const struct cw_snapshot *snap,
			   const struct cw_verdict *v, const struct cw_incident_matter *by_call)
{
	struct cw_incident_matter other = *by_call;
	int r = 0;

	if (was_alerted(inc, inc->id))
		return 0;
	if (is_wrong_size(v)) {
		other.key = cw_verdict_key_left_behind(&by_call->key);
		return take_alerted_id(inc, &other);
	}
	if (v->verdict_class == CW_CLASS_MISMATCH)
		return take_alerted_mismatch(inc, v, by_call);
	if (v->verdict_class != CW_CLASS_PROCESS_DEAD)
		return 0;
	for (uint32_t i = 0; r == 0 && i < v->n_culprits && i < CW_INCIDENT_MAX_CULPRITS; i++) {
		other = death_of(inc, snap, v->culprits[i].rank);
		r = take_alerted_id(inc, &other);
	}
	return r == 0 ? take_alerted_id(inc, by_call) : r;
}

/* Sets the incident's id and key for this verdict. Returns 0 or -ENOMEM. */
static int make_id(struct cw_incident *inc, const struct cw_snapshot *snap,
		   const struct cw_verdict *v, const struct cw_verdict_key *key)
{
	struct cw_incident_matter matter = {
		.uid = inc->config.uid,
		.job = inc->config.job,
		.key = *key,
		.start_ticks = start_of(snap, v),
	}, death;
	int r;

	if (v->verdict_class == CW_CLASS_NEVER_ENTERED && key->seq)
		matter.key.seq = first_missed(snap, v);
	if (v->verdict_class == CW_CLASS_PROCESS_DEAD && v->n_culprits) {
		death = death_of(inc, snap, v->culprits[0].rank);
		r = cw_incident_id_make(&death, inc->id);
	} else {
		r = cw_incident_id_make(&matter, inc->id);
	}
	if (r == 0)
		r = find_alerted_id(inc, snap, v, &matter);
	if (r < 0)
		return r;
	inc->key = *key;
	return 0;
}

bool cw_incident_was_alerted(const struct cw_incident_config *config,
			     const struct cw_snapshot *snap, const struct cw_verdict *v,
			     const struct cw_verdict_key *key, char ret_id[CW_INCIDENT_ID_LEN])
{
	struct cw_incident probe = { .config = *config };

	if (make_id(&probe, snap, v, key) < 0 || !was_alerted(&probe, probe.id))
		return false;
	memcpy(ret_id, probe.id, sizeof(probe.id));
	return true;
}

/* Makes the document. New reference; NULL = no facts, or out of memory (then we log it). */
static json_t *make_doc(const struct cw_incident *inc)
{
	json_t *doc = inc->has_facts ? cw_incident_facts_write(&inc->facts) : NULL;

	if (inc->has_facts && !doc)
		leader_log(inc->config.effects, CW_LOG_ERR,
			   "inc=%s: out of memory for its document, trying again", inc->id);
	return doc;
}

/* Adds the facts that only the leader knows. Returns 0 or -ENOMEM. */
static int add_own_facts(const struct cw_incident *inc, struct cw_incident_facts *facts,
			 struct cw_arena *arena)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "collwatch report %s", inc->id);
	facts->command = cw_arena_strdup(arena, command);
	facts->suppressed = inc->suppressed;
	facts->uid = inc->config.uid;
	return facts->command ? 0 : -ENOMEM;
}

/*
 * Adds the user's name. The look-up of the name starts with the first document, so that its result
 * is there when the alert is due. If memory runs out, the document has only the uid.
 */
static void name_user(struct cw_incident *inc)
{
	const struct cw_leader_effects *e = inc->config.effects;

	if (inc->has_facts && !inc->facts.user && e->user_name)
		inc->facts.user =
			cw_arena_strdup(&inc->arena, e->user_name(e->user, inc->config.uid));
}

static void update_bundle(struct cw_incident *inc)
{
	json_t *doc = make_doc(inc);
	int r = doc ? inc->config.effects->update_incident(inc->config.effects->user, doc)
		    : -ENOMEM;

	if (r < 0)
		leader_log(inc->config.effects, CW_LOG_WARN,
			   "inc=%s: its bundle cannot be brought up to date: %s, ignoring", inc->id,
			   strerror(-r));
	json_decref(doc);
}

/*
 * True if the bundle may contain the current documents. If a bundle has an unsent page, the store
 * may send that page at any time. So when a notice becomes a page, we write the page only when its
 * alert is due.
 */
static bool may_write(const struct cw_incident *inc)
{
	return inc->state == CW_INCIDENT_ALERTED ||
	       (inc->state == CW_INCIDENT_NOTED && inc->severity == CW_SEVERITY_NOTICE);
}

/*
 * True if there are stacks of the seconds before that the facts may not have yet. While the
 * incident is open, the readings may already be those of another wait.
 */
static bool has_new_earlier_stacks(const struct cw_incident *inc)
{
	return cw_earlier_stacks_are_of(&inc->earlier, &inc->key) &&
	       cw_earlier_stacks_readings(&inc->earlier) != inc->earlier_written;
}

/* Adds the stacks of the seconds before if there are new ones, or if the facts are new. */
static void add_earlier_stacks(struct cw_incident *inc)
{
	uint32_t n = cw_earlier_stacks_readings(&inc->earlier);

	if (!has_new_earlier_stacks(inc) &&
	    (inc->facts.n_earlier_stacks || !cw_earlier_stacks_are_of(&inc->earlier, &inc->key)))
		return;
	/* Out of memory: the document has none, or the older ones. */
	(void)cw_earlier_stacks_add(&inc->earlier, &inc->facts, &inc->arena);
	inc->earlier_written = n;
}

/* Writes the bundle with all evidence collected so far. Does nothing without documents. */
static void write_bundle(struct cw_incident *inc)
{
	struct cw_bundle bundle = { .snapshot = inc->snapshot };
	int r;

	if (!inc->has_facts)
		return;
	name_user(inc);
	if (inc->is_kept) {
		update_bundle(inc);
		return;
	}
	bundle.evidence = cw_evidence_set_array(&inc->evidence);
	if (inc->collection) {
		cw_stack_collection_take(inc->collection, &inc->evidence);
		bundle.stacks = cw_stack_collection_doc(inc->collection);
		inc->collection_written = cw_stack_collection_answers(inc->collection);
		/* Out of memory: the tree still has the stacks. */
		if (bundle.evidence)
			(void)cw_stack_collection_add_evidence(inc->collection, bundle.evidence);
	}
	(void)cw_incident_facts_add_evidence(&inc->facts, &inc->arena,
					     /* On failure the bundle has fewer details. */
					     bundle.evidence);
	add_earlier_stacks(inc);
	bundle.incident = make_doc(inc);
	inc->owes_bundle = !bundle.incident;
	r = bundle.incident ? inc->config.effects->put(inc->config.effects->user, &bundle)
			    : -ENOMEM;
	if (r < 0)
		leader_log(inc->config.effects, CW_LOG_WARN,
			   "inc=%s: the bundle cannot be written yet: %s; kept in memory", inc->id,
			   strerror(-r));
	json_decref(bundle.incident);
	json_decref(bundle.evidence);
	json_decref(bundle.stacks);
}

static uint64_t iteration_pieces(const struct cw_incident *inc)
{
	return inc->config.iteration_pieces ? inc->config.iteration_pieces : ITERATION_PIECES;
}

bool cw_incident_is_writing(const struct cw_incident *inc)
{
	return inc->text != NULL;
}

void cw_incident_write_on(struct cw_incident *inc, const struct cw_snapshot *snap)
{
	json_t *text = NULL;
	int r;

	if (!inc->text)
		return;
	r = cw_snapshot_text_step(inc->text, snap, iteration_pieces(inc));
	if (r == 0)
		return;
	if (r > 0)
		text = cw_snapshot_text_take(inc->text);
	inc->text = cw_snapshot_text_free(inc->text);
	if (!text) {
		leader_log(inc->config.effects, CW_LOG_ERR,
			   "inc=%s: out of memory for its snapshot: its bundle has an older one or "
			   "none",
			   inc->id);
		return;
	}
	json_decref(inc->snapshot);
	inc->snapshot = text;
	if (may_write(inc))
		write_bundle(inc);
}

/* Keeps the times that we found first. A notice has no time of confirmation. */
static void keep_first_times(struct cw_incident *inc, struct cw_incident_times *times)
{
	if (!inc->has_times)
		inc->times = *times;
	else if (!inc->times.confirmed_wall_ns)
		inc->times.confirmed_wall_ns = times->confirmed_wall_ns;
	inc->has_times = true;
	*times = inc->times;
}

/*
 * True if a new hang in the same place is the same incident. If the earlier hang ended by itself,
 * the new hang is another incident.
 */
static bool is_the_same(const struct cw_incident_facts *facts)
{
	return facts->times &&
	       (!facts->closed_as.text || facts->closed_as.number == CW_CLOSED_AS_JOB_ENDED ||
		facts->closed_as.number == CW_CLOSED_AS_UNSEEN);
}

static void reopen(struct cw_incident *inc, struct cw_incident_facts *facts)
{
	inc->was_closed = facts->closed_as.text != NULL;
	facts->closed_as = (struct cw_named){ .number = -1 };
	facts->lasted_s = 0;
	facts->times->resolved_wall_ns = 0;
}

/*
 * Continues with an earlier bundle, and keeps its times. Returns false if there is no such bundle,
 * or if it is incomplete. The caller must then create documents and evidence anew.
 */
static bool go_on(struct cw_incident *inc, enum cw_severity severity, bool needs_stacks)
{
	const struct cw_incident_due due = { .id = inc->id,
					     .job = inc->config.job,
					     .uid = inc->config.uid };
	const struct cw_leader_effects *e = inc->config.effects;
	bool is_whole = false, was_notice;
	json_t *doc = e->load_incident ? e->load_incident(e->user, &due, &is_whole) : NULL;
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };

	if (!doc || cw_incident_facts_read(doc, &arena, &facts, NULL, NULL) < 0 ||
	    facts.verdict_class.number < 0 || !is_the_same(&facts)) {
		cw_arena_fini(&arena);
		json_decref(doc);
		return false;
	}
	json_decref(doc);
	reopen(inc, &facts);
	inc->times = *facts.times;
	inc->has_times = true;
	was_notice = facts.severity.number == CW_SEVERITY_NOTICE;
	if ((needs_stacks && !is_whole) || (was_notice && severity == CW_SEVERITY_PAGE)) {
		cw_arena_fini(&arena);
		return false;
	}
	inc->facts = facts;
	inc->arena = arena;
	inc->has_facts = true;
	inc->severity = was_notice ? CW_SEVERITY_NOTICE : CW_SEVERITY_PAGE;
	inc->is_kept = true;
	inc->verdict_class = (uint32_t)facts.verdict_class.number;
	/* The earlier decision stands, unless it was UNKNOWN. */
	inc->is_proof = true;
	inc->is_tie = false;
	inc->lacks_call =
		inc->verdict_class == CW_CLASS_MISMATCH && !(facts.where && facts.where->n_sides);
	return true;
}

/*
 * Makes the facts of this evaluation. They are a copy that borrows nothing from snapshot and
 * verdict. Returns 0 or -ENOMEM.
 */
static int make_facts(struct cw_incident *inc, const struct cw_snapshot *snap,
		      const struct cw_verdict *v, const struct cw_incident_info *info,
		      struct cw_arena *arena, struct cw_incident_facts *ret)
{
	json_t *doc = cw_incident_doc(snap, v, info);
	int r = doc ? cw_incident_facts_read(doc, arena, ret, NULL, NULL) : -ENOMEM;

	json_decref(doc);
	return r == 0 ? add_own_facts(inc, ret, arena) : -ENOMEM;
}

/*
 * Replaces the documents by those of this evaluation. If that fails, the old documents stay. The
 * snapshot's text may need more runs of cw_incident_write_on().
 */
static void remember(struct cw_incident *inc, const struct cw_snapshot *snap,
		     const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	char path[512] = "";
	/* A proof may come before the wait becomes a stall. Then the hang began with the wait. */
	int64_t stall_ns = d->stall_ns ? d->stall_ns : d->since_ns;
	struct cw_incident_info info = {
		.id = inc->id,
		/*
		 * The confidence of d is the one after patience with earlier facts. A later proof
		 * needs no patience.
		 */
		.confidence = v->is_proof ? v->confidence : d->confidence,
		.hang = d->hang,
		.severity = inc->severity,
		.proposes_serving = d->proposes_serving,
		.last_progress_wall_ns = wall_of(snap, v->last_progress_ns),
		.stall_wall_ns = wall_of(
			snap, stall_ns > v->last_progress_ns ? stall_ns : v->last_progress_ns),
		.confirmed_wall_ns = wall_of(snap, d->confirmed_ns),
		.leader = inc->config.self,
		.bundle = path,
	};
	struct cw_snapshot_text *text;
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };

	inc->config.effects->path(inc->config.effects->user, inc->id, path, sizeof(path));
	text = cw_incident_part_text(snap, v);
	if (!text || make_facts(inc, snap, v, &info, &arena, &facts) < 0) {
		leader_log(inc->config.effects, CW_LOG_ERR,
			   "inc=%s: out of memory for its documents, keeping the older ones",
			   inc->id);
		cw_arena_fini(&arena);
		(void)cw_snapshot_text_free(text); /* always NULL */
		return;
	}
	keep_first_times(inc, facts.times);
	cw_arena_fini(&inc->arena);
	inc->facts = facts;
	inc->arena = arena;
	inc->has_facts = true;
	name_user(inc);
	inc->is_kept = false;
	/* Text of the previous decision; always NULL. */
	(void)cw_snapshot_text_free(inc->text);
	inc->text = text;
	inc->verdict_class = v->verdict_class;
	inc->is_proof = v->is_proof;
	inc->lacks_call = v->verdict_class == CW_CLASS_MISMATCH && v->n_sides == 0;
	inc->is_tie =
		v->verdict_class == CW_CLASS_MISMATCH && v->confidence == CW_CONFIDENCE_POSSIBLE;
	inc->is_waited = v->waiting_since_ns != 0;
	inc->coll_seq = v->coll_seq;
	if (cw_snapshot_text_left(text) <= iteration_pieces(inc))
		cw_incident_write_on(inc, snap);
}

/* ---- actions on entering a state ---- */

static const char *summary_of(const struct cw_incident *inc)
{
	return cw_fact_text(inc->facts.summary.text);
}

static void log_alert(const struct cw_incident *inc, const char *message_id, int level,
		      const char *what)
{
	char text[1024], id[64], job[256], verdict_class[64], uid[64];
	const char *fields[] = { id, job, verdict_class, uid, NULL };
	const struct cw_leader_effects *e = inc->config.effects;

	if (!e->event)
		return;
	(void)snprintf(text, sizeof(text), "job=%s inc=%s: %s%s (collwatch report %s)",
		       inc->config.job, inc->id, what, summary_of(inc), inc->id);
	(void)snprintf(id, sizeof(id), "COLLWATCH_INCIDENT=%s", inc->id);
	(void)snprintf(job, sizeof(job), "COLLWATCH_JOB=%s", inc->config.job);
	(void)snprintf(verdict_class, sizeof(verdict_class), "COLLWATCH_CLASS=%s",
		       cw_class_name(inc->verdict_class));
	(void)snprintf(uid, sizeof(uid), "COLLWATCH_UID=%" PRIu32, inc->config.uid);
	e->event(e->user, level, message_id, text, fields);
}

/* Returns how long this daemon has been held up so far (common/awake.h). */
static int64_t held_ns(const struct cw_incident *inc)
{
	return cw_clock_now_ns(inc->config.clock) - cw_clock_awake_ns(inc->config.clock);
}

static void announce(struct cw_incident *inc)
{
	struct cw_message msg = {
		.type = CW_MSG_INCIDENT_ANNOUNCE,
		.incident_announce = { .id = inc->id,
				       .job_hash = inc->config.job_hash,
				       .job_key = inc->job.key,
				       .uid = inc->job.uid,
				       .label = inc->job.label,
				       .node = inc->config.self,
				       .summary = summary_of(inc) },
	};
	int64_t now = cw_clock_awake_ns(inc->config.clock);

	inc->announced_held_ns = held_ns(inc);
	/* Without other nodes no node can object, and the next tick clears the incident. */
	inc->clear_ns = now;
	if (inc->config.effects->announce(inc->config.effects->user, &msg) > 0)
		inc->clear_ns = now + CW_INCIDENT_OBJECTION_NS;
}

static void request_evidence(struct cw_incident *inc, const struct cw_snapshot *snap,
			     const struct cw_verdict *v)
{
	inc->config.effects->cancel(inc->config.effects->user, inc);
	/* The function logs errors itself. */
	(void)cw_evidence_set_request(
		&inc->evidence, CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE | CW_EVIDENCE_PYTHON,
		inc->config.effects, &inc->job, snap, v, CW_INCIDENT_EVIDENCE_MS, on_evidence, inc);
	inc->evidence_ns = cw_clock_awake_ns(inc->config.clock) +
			   (v->is_proof ? CW_INCIDENT_PROOF_EVIDENCE_NS : CW_INCIDENT_EVIDENCE_NS);
}

/*
 * Plans the collection of stacks. If a verdict that knows more adds culprits, this collection
 * covers them, but without a detailed inspection.
 */
static void plan_stack_collection(struct cw_incident *inc, const struct cw_snapshot *snap)
{
	struct cw_stack_collection_config config = {
		.clock = inc->config.clock,
		.effects = inc->config.effects,
		.job = inc->job,
		.what = CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE | CW_EVIDENCE_PYTHON,
	};

	if (inc->collection)
		return;
	inc->collection_written = 0;
	if (cw_stack_collection_new(&config, snap, &inc->evidence, &inc->collection) < 0)
		leader_log(inc->config.effects, CW_LOG_ERR,
			   "inc=%s: out of memory, stacks of the other ranks are not taken",
			   inc->id);
}

static struct cw_incident_due due_of(const struct cw_incident *inc)
{
	return (struct cw_incident_due){
		.id = inc->id,
		.job = inc->config.job,
		.uid = inc->config.uid,
		.verdict_class = inc->verdict_class,
	};
}

static void send_alert(struct cw_incident *inc)
{
	const struct cw_incident_due due = due_of(inc);
	const struct cw_leader_effects *e = inc->config.effects;
	json_t *doc;

	inc->retry_ns = 0;
	if (inc->suppressed)
		return;
	if (e->was_sent(e->user, &due)) {
		leader_log(inc->config.effects, CW_LOG_INFO, "inc=%s: the alert went out before",
			   inc->id);
		return;
	}
	name_user(inc);
	doc = make_doc(inc);
	if (!doc || e->alert(e->user, &due, doc) < 0)
		cw_incident_undelivered(inc);
	json_decref(doc);
}

/* Adds the nodes that delayed the alert to the document, so that the user sees why it came late. */
static void add_objectors(struct cw_incident *inc)
{
	struct cw_incident_objection *list;

	if (!inc->n_deferred)
		return;
	list = cw_arena_new_array(&inc->arena, struct cw_incident_objection, inc->n_objectors + 1u);
	/* Out of memory: only the journal lists the nodes. */
	if (!list)
		return;
	for (unsigned i = 0; i < inc->n_objectors; i++)
		list[i] = (struct cw_incident_objection){ .node = inc->objectors[i].node,
							  .reason = inc->objectors[i].reason };
	inc->facts.objections = list;
	inc->facts.n_objections = inc->n_objectors;
}

/*
 * Writes the bundle and the journal, and sends the alert unless it is suppressed. Runs when the
 * alert is due.
 */
static void alert(struct cw_incident *inc)
{
	const struct cw_incident_due due = due_of(inc);
	char what[64] = "";

	add_objectors(inc);
	inc->suppressed = inc->config.effects->suppress_reason(inc->config.effects->user, &due);
	if (inc->suppressed) {
		(void)snprintf(what, sizeof(what), "would have alerted (%s): ", inc->suppressed);
		inc->facts.suppressed = inc->suppressed;
	}
	if (inc->is_kept && !inc->was_closed) {
		leader_log(inc->config.effects, CW_LOG_INFO, "inc=%s: it goes on",
			   inc->id); /* the journal has it already */
	} else {
		write_bundle(inc);
		log_alert(inc, cw_incident_journal_id(inc->verdict_class), CW_LOG_WARN, what);
	}
	send_alert(inc);
}

/* Sends the notice. If memory runs out, the next tick does. */
static void send_notice(struct cw_incident *inc)
{
	const struct cw_incident_due due = due_of(inc);
	const struct cw_leader_effects *e = inc->config.effects;
	json_t *doc = e->notice ? make_doc(inc) : NULL;

	inc->owes_notice = e->notice && !doc;
	if (doc)
		e->notice(e->user, &due, doc);
	json_decref(doc);
}

/*
 * Writes a notice into bundle and journal, and pages no user. Writes one notice per id, as far as
 * we know.
 */
static void note(struct cw_incident *inc)
{
	if (inc->is_kept && !inc->was_closed) {
		leader_log(inc->config.effects, CW_LOG_INFO, "inc=%s: it goes on", inc->id);
		return;
	}
	write_bundle(inc);
	log_alert(inc, CW_MESSAGE_ID_NOTICE, CW_LOG_NOTICE, "notice: ");
	send_notice(inc);
}

static void close_bundle(struct cw_incident *inc, enum cw_closed_as closed_as, const char *reason)
{
	char what[96];

	if (inc->facts.times)
		inc->facts.times->resolved_wall_ns = cw_clock_wall_ns(inc->config.clock);
	inc->facts.closed_as = (struct cw_named){ (int)closed_as, cw_closed_as_name(closed_as) };
	inc->facts.lasted_s = (double)inc->lasted_ns / CW_NS_PER_S;
	if (inc->collection)
		cw_stack_collection_stop(inc->collection, "the hang ended before");
	write_bundle(inc);
	if (inc->lasted_ns)
		(void)snprintf(what, sizeof(what),
			       "%s after %" PRId64 " s. What was seen before: ", reason,
			       inc->lasted_ns / CW_NS_PER_S);
	else
		(void)snprintf(what, sizeof(what), "%s. What was seen before: ", reason);
	log_alert(inc, CW_MESSAGE_ID_RESOLVED, CW_LOG_NOTICE, what);
}

static void enter(struct cw_incident *inc, unsigned from)
{
	switch (inc->state) {
	case CW_INCIDENT_NOTED:
		note(inc);
		break;
	case CW_INCIDENT_CONFIRMED:
		inc->retry_ns = 0;
		announce(inc);
		/* After an objection we already have the evidence. */
		if (!inc->evidence_ns)
			inc->evidence_ns = inc->clear_ns;
		break;
	case CW_INCIDENT_ALERTED:
		alert(inc);
		inc->python_ns = cw_clock_awake_ns(inc->config.clock) + CW_INCIDENT_PYTHON_AGAIN_NS;
		break;
	case CW_INCIDENT_OBJECTED:
		inc->clear_ns = 0;
		inc->retry_ns = cw_clock_awake_ns(inc->config.clock) + CW_INCIDENT_RETRY_NS;
		break;
	case CW_INCIDENT_RESOLVED:
		close_bundle(inc, CW_CLOSED_AS_SLOW, "resolved");
		forget(inc);
		break;
	case CW_INCIDENT_ENDED:
		if (from == CW_INCIDENT_ALERTED || from == CW_INCIDENT_NOTED)
			close_bundle(inc, CW_CLOSED_AS_JOB_ENDED, "the job ended");
		forget(inc);
		break;
	case CW_INCIDENT_IDLE:
		forget(inc);
		break;
	default:
		break;
	}
}

static void handle(struct cw_incident *inc, unsigned event)
{
	unsigned from = inc->state;
	int next = cw_incident_state_next(from, event);

	if (next < 0) {
		leader_log(inc->config.effects, CW_LOG_ERR,
			   "job=%s inc=%s: bug: event %u in state %s, ignoring", inc->config.job,
			   inc->id, event, cw_incident_state_name(from));
		return;
	}
	if ((unsigned)next == from)
		return;
	inc->state = (unsigned)next;
	leader_log(inc->config.effects, CW_LOG_DEBUG, "job=%s inc=%s: %s -> %s", inc->config.job,
		   inc->id, cw_incident_state_name(from), cw_incident_state_name(inc->state));
	enter(inc, from);
}

/* ---- evaluations ---- */

/*
 * True if this evaluation knows more than the decision and may replace it. If a process died after
 * the decision, its death is a consequence and not the cause. For example, a user killed the
 * hanging job.
 */
static bool knows_more(const struct cw_incident *inc, const struct cw_snapshot *snap,
		       const struct cw_verdict *v)
{
	if (v->verdict_class == CW_CLASS_HEALTHY || v->verdict_class == CW_CLASS_UNKNOWN)
		return false;
	for (uint32_t i = 0; v->verdict_class == CW_CLASS_PROCESS_DEAD && i < v->n_culprits; i++)
		if (snap->ranks[v->culprits[i].rank].ended_ns > inc->confirmed_ns)
			return false;
	if (inc->lacks_call && v->verdict_class == CW_CLASS_MISMATCH)
		return v->n_sides > 0;
	/*
	 * The sides were equal in size at the decision. More calls have arrived since, and now one
	 * side is the odd one.
	 */
	if (inc->is_tie && v->verdict_class == inc->verdict_class &&
	    v->confidence > CW_CONFIDENCE_POSSIBLE)
		return true;
	return inc->verdict_class == CW_CLASS_UNKNOWN || (v->is_proof && !inc->is_proof);
}

static void refine(struct cw_incident *inc, const struct cw_snapshot *snap,
		   const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	uint32_t old = inc->verdict_class;

	if (!cw_verdict_key_is_same(&d->key, &inc->key) || !knows_more(inc, snap, v))
		return;
	remember(inc, snap, v, d);
	leader_log(inc->config.effects, CW_LOG_INFO, "inc=%s: refined from %s to %s", inc->id,
		   cw_class_name(old), cw_class_name(inc->verdict_class));
	/* We found culprits: request their evidence. */
	if (old == CW_CLASS_UNKNOWN)
		request_evidence(inc, snap, v);
	if (may_write(inc))
		write_bundle(inc);
}

static bool needs_stacks(const struct cw_verdict *v)
{
	return !cw_verdict_is_silent(v);
}

/* Creates documents and evidence anew and starts the alert. The times that we found first stay. */
static void decide(struct cw_incident *inc, const struct cw_snapshot *snap,
		   const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	remember(inc, snap, v, d);
	if (!inc->has_facts)
		/* Out of memory, logged: the next evaluation tries again. */
		return;
	request_evidence(inc, snap, v);
	if (needs_stacks(v)) /* also for a notice, because the report may never get more */
		plan_stack_collection(inc, snap);
	handle(inc,
	       inc->severity == CW_SEVERITY_PAGE ? CW_INCIDENT_EV_HANG : CW_INCIDENT_EV_NOTICE);
}

void cw_incident_holds_up(struct cw_incident *inc, const struct cw_snapshot *snap,
			  const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	if (inc->is_waited)
		return;
	remember(inc, snap, v, d);
	if (!inc->is_waited)
		/* Out of memory, logged: the next evaluation tries again. */
		return;
	leader_log(inc->config.effects, CW_LOG_INFO,
		   "inc=%s: ranks now wait because of this wrong data; no second alert", inc->id);
	request_evidence(inc, snap, v);
	plan_stack_collection(inc, snap);
	if (may_write(inc))
		write_bundle(inc);
}

bool cw_incident_is_wrong_data(const struct cw_incident *inc, const struct cw_verdict *v,
			       const struct cw_verdict_key *key)
{
	if (!cw_incident_is_open(inc) || inc->verdict_class != v->verdict_class ||
	    inc->key.is_waited || inc->key.comm_id != key->comm_id ||
	    inc->key.instance != key->instance)
		return false;
	if (v->verdict_class == CW_CLASS_MISMATCH)
		return v->coll_seq && inc->coll_seq == v->coll_seq;
	return v->verdict_class == CW_CLASS_P2P_UNMATCHED && v->detail == CW_DETAIL_SIZE;
}

bool cw_incident_explains_wait(const struct cw_incident *inc, const struct cw_snapshot *snap,
			       const struct cw_verdict *v)
{
	int64_t apart_ns = v->waiting_since_ns - inc->confirmed_ns;

	return v->verdict_class == CW_CLASS_IN_COLLECTIVE && v->waiting_since_ns &&
	       v->comm < snap->n_comms && cw_incident_is_open(inc) &&
	       inc->verdict_class == CW_CLASS_MISMATCH && !inc->key.is_waited &&
	       inc->key.comm_id == snap->comms[v->comm].id &&
	       inc->key.instance == snap->comms[v->comm].instance &&
	       apart_ns < WRONG_DATA_HOLDS_NS && apart_ns > -WRONG_DATA_HOLDS_NS;
}

/* Turns a noted stall into a hang. */
static void escalate(struct cw_incident *inc, const struct cw_snapshot *snap,
		     const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	bool was_alerted = inc->is_kept && inc->severity == CW_SEVERITY_PAGE;

	/* A page needs stacks of its own time, not of the time of the notice. */
	inc->collection = cw_stack_collection_free(inc->collection);
	inc->confirmed_ns = snap->now_ns;
	inc->severity = CW_SEVERITY_PAGE;
	/* We alerted before a restart of this daemon. */
	if (was_alerted)
		handle(inc, CW_INCIDENT_EV_HANG);
	else
		decide(inc, snap, v, d);
}

static void confirm(struct cw_incident *inc, const struct cw_snapshot *snap,
		    const struct cw_verdict *v, const struct cw_stall_decision *d,
		    enum cw_severity severity)
{
	forget_facts(inc);
	if (make_id(inc, snap, v, &d->key) < 0) {
		leader_log(inc->config.effects, CW_LOG_ERR,
			   "job=%s: out of memory for an incident's id, trying again",
			   inc->config.job);
		return;
	}
	inc->confirmed_ns = snap->now_ns;
	inc->severity = severity;
	inc->is_waited = v->waiting_since_ns != 0;
	inc->coll_seq = v->coll_seq;
	if (go_on(inc, severity, severity == CW_SEVERITY_PAGE && needs_stacks(v)))
		handle(inc,
		       severity == CW_SEVERITY_PAGE ? CW_INCIDENT_EV_HANG : CW_INCIDENT_EV_NOTICE);
	else
		decide(inc, snap, v, d);
}

static bool wants_notices(const struct cw_incident *inc)
{
	const struct cw_leader_effects *e = inc->config.effects;

	return e->wants_notices && e->wants_notices(e->user);
}

/*
 * True if the decision resolves this incident. A decision about another key, or a quiet one, does
 * not suffice, because two verdicts may alternate as the worst.
 */
static bool is_gone(const struct cw_incident *inc, const struct cw_stall_decision *d)
{
	return cw_verdict_key_is_same(&d->resolved_key, &inc->key);
}

void cw_incident_step(struct cw_incident *inc, const struct cw_snapshot *snap,
		      const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	static const uint8_t events[] = {
		[CW_STALL_QUIET] = CW_INCIDENT_EV_QUIET,
		[CW_STALL_SUSPECT] = CW_INCIDENT_EV_SUSPECT,
		[CW_STALL_STALLED] = CW_INCIDENT_EV_STALL,
		[CW_STALL_HANG] = CW_INCIDENT_EV_HANG,
	};

	cw_earlier_stacks_step(&inc->earlier, snap, v, d);
	if (cw_incident_is_open(inc)) {
		if (!is_gone(inc, d)) {
			if (inc->state == CW_INCIDENT_NOTED && d->phase == CW_STALL_HANG &&
			    cw_verdict_key_is_same(&d->key, &inc->key))
				escalate(inc, snap, v, d);
			else
				refine(inc, snap, v, d);
			return;
		}
		inc->lasted_ns = d->resolved_after_ns;
		handle(inc, CW_INCIDENT_EV_QUIET);
		if (d->phase == CW_STALL_QUIET)
			return;
	}
	if (d->phase == CW_STALL_HANG)
		confirm(inc, snap, v, d, CW_SEVERITY_PAGE);
	else if (d->is_noticed && wants_notices(inc))
		confirm(inc, snap, v, d, CW_SEVERITY_NOTICE);
	else
		handle(inc, events[d->phase <= CW_STALL_HANG ? d->phase : CW_STALL_QUIET]);
}

/* ---- messages and deadlines ---- */

static void on_evidence(const char *node, const struct cw_message *reply, void *user)
{
	struct cw_incident *inc = user;

	cw_evidence_set_take(&inc->evidence, node, reply);
	if (may_write(inc))
		/* Too late for the alert, but in time for the report. */
		write_bundle(inc);
}

/*
 * Collects the stacks of the other ranks when the evidence for the alert is complete, or overdue.
 */
static void collect_stacks(struct cw_incident *inc, int64_t now)
{
	bool is_written = inc->state == CW_INCIDENT_ALERTED || inc->state == CW_INCIDENT_NOTED;

	if (!inc->collection || inc->evidence_ns ||
	    (!is_written && inc->state != CW_INCIDENT_PREPARED))
		return;
	cw_stack_collection_take(inc->collection, &inc->evidence);
	cw_stack_collection_start(inc->collection);
	cw_stack_collection_tick(inc->collection);
	if (!is_written ||
	    cw_stack_collection_answers(inc->collection) == inc->collection_written ||
	    (now < inc->collection_due_ns && !cw_stack_collection_is_complete(inc->collection)))
		return;
	inc->collection_due_ns = now + COLLECTION_WRITE_NS;
	write_bundle(inc);
}

/*
 * Announces the incident again if this daemon was held up before it sent its alert. Other nodes may
 * have thought that this node is lost, and another node may have alerted.
 */
static void ask_again_if_held(struct cw_incident *inc)
{
	if (inc->state == CW_INCIDENT_NOTED || inc->state > CW_INCIDENT_PREPARED ||
	    held_ns(inc) - inc->announced_held_ns < CW_INCIDENT_HELD_NS)
		return;
	if (inc->state == CW_INCIDENT_CLEARED)
		/* The event announces the incident again. */
		handle(inc, CW_INCIDENT_EV_HELD);
	else
		announce(inc);
}

static bool is_due(int64_t *deadline_ns, int64_t now)
{
	if (!*deadline_ns || now < *deadline_ns)
		return false;
	*deadline_ns = 0;
	return true;
}

void cw_incident_tick(struct cw_incident *inc)
{
	int64_t now = cw_clock_awake_ns(inc->config.clock);

	if (!cw_incident_is_open(inc))
		return;
	if (inc->owes_bundle && may_write(inc))
		write_bundle(inc);
	if (inc->owes_notice && inc->state == CW_INCIDENT_NOTED)
		send_notice(inc);
	ask_again_if_held(inc);
	if (inc->evidence_ns && cw_evidence_set_is_complete(&inc->evidence))
		inc->evidence_ns = now;
	if (is_due(&inc->evidence_ns, now))
		handle(inc, CW_INCIDENT_EV_EVIDENCE);
	if (is_due(&inc->clear_ns, now))
		handle(inc, CW_INCIDENT_EV_CLEAR);
	collect_stacks(inc, now);
	if (may_write(inc) && !inc->is_kept && has_new_earlier_stacks(inc))
		write_bundle(inc);
	if (is_due(&inc->python_ns, now) && inc->state == CW_INCIDENT_ALERTED)
		cw_evidence_set_ask_python(&inc->evidence, inc->config.effects, &inc->job,
					   CW_INCIDENT_EVIDENCE_MS, on_evidence, inc);
	if (!is_due(&inc->retry_ns, now))
		return;
	if (inc->state == CW_INCIDENT_ALERTED)
		send_alert(inc);
	else
		handle(inc, CW_INCIDENT_EV_RETRY);
}

void cw_incident_end(struct cw_incident *inc)
{
	if (inc->state != CW_INCIDENT_ENDED)
		handle(inc, CW_INCIDENT_EV_END);
}

static void note_objector(struct cw_incident *inc, const char *node, const char *reason)
{
	struct cw_objector *o = inc->objectors;
	unsigned i = 0;

	while (i < inc->n_objectors && strcmp(o[i].node, node) != 0)
		i++;
	if (i == CW_INCIDENT_MAX_OBJECTORS)
		return;
	if (i == inc->n_objectors)
		(void)snprintf(o[inc->n_objectors++].node, sizeof(o->node), "%s", node);
	(void)snprintf(o[i].reason, sizeof(o[i].reason), "%s", reason);
}

bool cw_incident_object(struct cw_incident *inc, const char *node, const char *reason,
			unsigned most)
{
	if (!cw_incident_is_open(inc) || inc->state == CW_INCIDENT_NOTED)
		/* We had announced nothing to object to. */
		return true;
	if (!most) {
		leader_log(inc->config.effects, CW_LOG_INFO, "inc=%s: %s objects: %s", inc->id,
			   node, reason);
	} else {
		note_objector(inc, node, reason);
		if (inc->n_deferred >= most) {
			if (!inc->is_overruling)
				leader_log(
					inc->config.effects, CW_LOG_WARN,
					"inc=%s: %s objects again (%s): it was put off %u time%s "
					"for that, the alert goes out",
					inc->id, node, reason, inc->n_deferred,
					inc->n_deferred == 1 ? "" : "s");
			inc->is_overruling = true;
			return false;
		}
		leader_log(inc->config.effects, CW_LOG_INFO, "inc=%s: %s objects: %s", inc->id,
			   node, reason);
		/* Several objections to one announcement count as one. */
		inc->n_deferred +=
			inc->state >= CW_INCIDENT_CONFIRMED && inc->state <= CW_INCIDENT_PREPARED;
	}
	handle(inc, CW_INCIDENT_EV_OBJECTION);
	return true;
}

void cw_incident_undelivered(struct cw_incident *inc)
{
	if (inc->state == CW_INCIDENT_ALERTED)
		inc->retry_ns = cw_clock_awake_ns(inc->config.clock) + CW_INCIDENT_RETRY_NS;
}
