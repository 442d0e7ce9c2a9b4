/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request first finds its job and takes a snapshot of the job's ranks. It passes the snapshot to
 * a stack collection (leader/incident/stack_collection.h). We then poll the collection until it is
 * complete or its time is over. If another node leads the job, the answer has only the ranks of
 * this node.
 */
#include "daemon/control/stacks_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/json/json_whole.h"
#include "leader/incident/stack_collection.h"
#include "model/snapshot.h"
#include "report/json_util.h"

enum { CODE_OK = 0, CODE_ERROR = 1, CODE_NO_DATA = 3 };

/*
 * Longest document: the longest string of a message, less room for the frame's header and the error
 * text.
 */
#define MAX_JSON (CW_MSG_MAX_STRING - 1024)

/* Means "no rank". It is not -1, because -1 means a rank with an unknown number. */
#define NO_RANK INT32_MIN

struct request {
	struct request *next, *prev;
	struct cw_stacks *owner;
	uid_t uid;
	cw_stacks_fn fn;
	void *user;
	int64_t end_ns;
	/* NULL = the request failed, and the answer is an error */
	struct cw_stack_collection *collection;
	char job[200]; /* label of the job */
	/* Names the parts that the answer lacks; "" = none. */
	char note[160];
	uint32_t code;
	char error[256];
};

struct cw_stacks {
	struct cw_stacks_config config;
	struct request *requests;
	struct {
		uid_t uid;
		int64_t at_ns; /* time of the user's last request; 0 = this entry is free */
	} users[CW_STACKS_MAX_USERS];
	uint64_t refused;
};

int cw_stacks_request_new(const struct cw_stacks_config *config, struct cw_stacks **ret)
{
	struct cw_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->config = *config;
	*ret = s;
	return 0;
}

static void drop(struct request *q)
{
	DL_DELETE(q->owner->requests, q);
	cw_stack_collection_free(q->collection);
	free(q);
}

struct cw_stacks *cw_stacks_request_free(struct cw_stacks *s)
{
	struct request *q, *tmp;

	if (!s)
		return NULL;
	DL_FOREACH_SAFE (s->requests, q, tmp)
		drop(q);
	free(s);
	return NULL;
}

uint64_t cw_stacks_request_refused(const struct cw_stacks *s)
{
	return s->refused;
}

void cw_stacks_request_cancel(struct cw_stacks *s, const void *user)
{
	struct request *q, *tmp;

	DL_FOREACH_SAFE (s->requests, q, tmp)
		if (q->user == user)
			drop(q);
}

/* ---- limits ---- */

/* Returns 0 and notes the request. If the user must wait, returns the remaining time in ns. */
static int64_t wait_ns(struct cw_stacks *s, uid_t uid)
{
	int64_t now = cw_clock_now_ns(s->config.clock);
	unsigned oldest = 0;

	for (unsigned i = 0; i < CW_STACKS_MAX_USERS; i++) {
		if (s->users[i].at_ns && s->users[i].uid == uid) {
			if (now - s->users[i].at_ns < CW_STACKS_EVERY_NS)
				return s->users[i].at_ns + CW_STACKS_EVERY_NS - now;
			oldest = i;
			break;
		}
		if (s->users[i].at_ns < s->users[oldest].at_ns)
			oldest = i;
	}
	s->users[oldest].uid = uid;
	s->users[oldest].at_ns = now;
	return 0;
}

static bool is_allowed(struct cw_stacks *s, struct request *q)
{
	unsigned running = 0;
	struct request *other;
	bool has_one = false;
	int64_t ns;

	DL_FOREACH (s->requests, other) {
		running += other->collection != NULL;
		has_one |= other->collection && other->uid == q->uid;
	}
	if (has_one)
		(void)snprintf(q->error, sizeof(q->error),
			       "an earlier request of yours for stacks is still running: wait for "
			       "its answer");
	else if (running >= CW_STACKS_MAX_RUNNING)
		(void)snprintf(q->error, sizeof(q->error),
			       "requests for stacks are running for %u other%s: try again later",
			       running, running == 1 ? "" : "s");
	else if ((ns = wait_ns(s, q->uid)) > 0)
		(void)snprintf(q->error, sizeof(q->error),
			       "stacks were taken just now: try again in %" PRId64 " s",
			       (ns + CW_NS_PER_S - 1) / CW_NS_PER_S);
	else
		return true;
	q->code = CODE_ERROR;
	s->refused++;
	return false;
}

/* ---- finding the job ---- */

struct search {
	struct cw_stacks *s;
	const struct cw_caller *caller;
	const char *job; /* NULL = any job */
	bool has_rank;
	int32_t rank;
	bool native, all_threads;
	unsigned n_found;
	char labels[2][200]; /* labels of the first two jobs that match */
	struct cw_snapshot *snap;
	struct cw_job_id id;
	bool is_led_here, is_hang;
	char leader[64];
	/* The job while we list its processes on this node; otherwise NULL. */
	const struct cw_election_job *part;
	uint32_t node;
};

static bool is_wanted(const struct search *f, const char *label, uint32_t uid)
{
	const char *colon = strchr(label, ':');

	if (!cw_caller_may_see(f->caller, uid))
		return false;
	return !f->job || strcmp(label, f->job) == 0 || (colon && strcmp(colon + 1, f->job) == 0);
}

static bool has_rank(const struct cw_snapshot *snap, int32_t rank)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].rank == rank)
			return true;
	return false;
}

/*
 * Notes a job that matches, and takes snap. Returns false if it lacks the wanted rank, or if
 * another job matched before.
 */
static bool note_found(struct search *f, const char *label, struct cw_snapshot *snap)
{
	if (f->has_rank && !has_rank(snap, f->rank)) {
		cw_snapshot_free(snap);
		return false;
	}
	if (f->n_found < 2)
		(void)snprintf(f->labels[f->n_found], sizeof(f->labels[0]), "%s", label);
	if (f->n_found++ > 0) {
		cw_snapshot_free(snap);
		return false;
	}
	f->snap = snap;
	return true;
}

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	struct search *f = user;
	struct cw_snapshot *snap;

	/* Cast the const away: the function reads the job's windows and changes nothing. */
	if (!is_wanted(f, digests->label, digests->uid) ||
	    cw_leader_snapshot(f->s->config.leader, digests, (struct cw_job *)job, &snap) < 0)
		return;
	if (!note_found(f, digests->label, snap))
		return;
	f->id = digests->job;
	f->is_led_here = true;
	f->is_hang = job->view.phase == CW_STALL_HANG;
}

static void on_process(const struct cw_node_process *p, const char *label, void *user)
{
	struct search *f = user;
	struct cw_snap_rank rank = {
		.rank = p->rank,
		.node = f->node,
		.pid = p->pid,
		.start_ticks = p->start_ticks,
		.liveness = p->is_dead ? CW_LIVE_EXITED : CW_LIVE_ALIVE,
	};
	uint32_t index;

	if (strcmp(label, f->part->label) == 0 && p->uid == f->part->uid)
		/* If this fails, the snapshot lacks this rank. */
		(void)cw_snapshot_add_rank(f->snap, &rank, &index);
}

/* Notes a job that another node leads, with its ranks on this node. */
static void on_local_job(const struct cw_election_job *r, void *user)
{
	const char *self = cw_transport_self(((struct search *)user)->s->config.transport);
	struct search *f = user, part = *f;

	if (!is_wanted(f, r->label, r->uid) || strcmp(r->leader, self) == 0)
		return;
	part.snap = cw_snapshot_new();
	part.part = r;
	if (!part.snap || cw_snapshot_add_node(part.snap, self, &part.node) < 0) {
		cw_snapshot_free(part.snap);
		return;
	}
	cw_node_each(f->s->config.node, on_process, &part);
	if (!note_found(f, r->label, part.snap))
		return;
	f->id = *r->job;
	f->is_led_here = false;
	(void)snprintf(f->leader, sizeof(f->leader), "%s", r->leader);
}

/*
 * Finds the wanted job. Returns false, and sets the request's error, unless exactly one job
 * matches.
 */
static bool find_job(struct search *f, struct request *q)
{
	cw_leader_jobs(f->s->config.leader, on_job, f);
	cw_election_each(f->s->config.members, on_local_job, f);
	if (f->n_found == 1) {
		(void)snprintf(q->job, sizeof(q->job), "%s", f->labels[0]);
		return true;
	}
	q->code = f->n_found ? CODE_ERROR : CODE_NO_DATA;
	if (f->n_found)
		(void)snprintf(q->error, sizeof(q->error),
			       "several jobs match: %.80s, %.80s and possibly others. `collwatch "
			       "status` lists them",
			       f->labels[0], f->labels[1]);
	else if (f->has_rank)
		(void)snprintf(q->error, sizeof(q->error),
			       "no rank %" PRId32 " of %s%.100s that you may see is known here",
			       f->rank, f->job ? "job " : "a job", f->job ? f->job : "");
	else
		(void)snprintf(q->error, sizeof(q->error),
			       "no job%s%.100s that you may see is known here", f->job ? " " : "",
			       f->job ? f->job : "");
	return false;
}

/* ---- requests ---- */

static void begin(struct request *q, struct search *f)
{
	struct cw_stack_collection_config config = {
		.clock = q->owner->config.clock,
		.effects = q->owner->config.effects,
		.job = f->id,
		/*
		 * Taking native stacks stops the rank for a moment. So we take them only if the
		 * user requests them, or if there are no Python stacks.
		 */
		.what = CW_EVIDENCE_PROC | CW_EVIDENCE_PYTHON_READ |
			(f->native || f->has_rank ? CW_EVIDENCE_NATIVE : CW_EVIDENCE_NATIVE_ELSE) |
			(f->all_threads ? CW_EVIDENCE_ALL_PYTHON : 0) |
			(f->is_hang ? CW_EVIDENCE_PYTHON : 0),
		.has_rank = f->has_rank,
		.only_rank = f->rank,
	};

	if (!f->is_led_here)
		(void)snprintf(q->note, sizeof(q->note),
			       "only stacks of the ranks of this node: %s leads the job, ask "
			       "there for all",
			       f->leader);
	if (cw_stack_collection_new(&config, f->snap, NULL, &q->collection) < 0) {
		q->code = CODE_ERROR;
		(void)snprintf(q->error, sizeof(q->error), "the daemon is out of memory");
		return;
	}
	q->end_ns = cw_clock_awake_ns(config.clock) + CW_STACKS_WITHIN_NS;
	cw_stack_collection_start(q->collection);
}

static struct search search_for(struct cw_stacks *s, const struct cw_caller *caller,
				const json_t *arguments)
{
	const json_t *rank = json_object_get(arguments, "rank");
	json_int_t number = json_integer_value(rank);

	return (struct search){
		.s = s,
		.caller = caller,
		.job = json_string_value(json_object_get(arguments, "job")),
		.has_rank = json_is_integer(rank),
		.native = json_is_true(json_object_get(arguments, "native")),
		.all_threads = json_is_true(json_object_get(arguments, "all_threads")),
		.rank = number >= 0 && number <= INT32_MAX ? (int32_t)number : NO_RANK,
	};
}

static void on_led_here(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	struct search *f = user;

	f->is_led_here |= is_wanted(f, digests->label, digests->uid);
}

static void on_led_elsewhere(const struct cw_election_job *r, void *user)
{
	const char *self = cw_transport_self(((struct search *)user)->s->config.transport);
	struct search *f = user;

	if (!is_wanted(f, r->label, r->uid) || strcmp(r->leader, self) == 0)
		return;
	f->n_found++;
	(void)snprintf(f->leader, sizeof(f->leader), "%s", r->leader);
}

enum cw_stacks_request_place cw_stacks_request_place(struct cw_stacks *s,
						     const struct cw_caller *caller,
						     const json_t *arguments, char *leader,
						     size_t len)
{
	struct search f = search_for(s, caller, arguments);

	cw_leader_jobs(s->config.leader, on_led_here, &f);
	cw_election_each(s->config.members, on_led_elsewhere, &f);
	if (f.is_led_here || f.n_found > 1)
		return CW_STACKS_HERE;
	(void)snprintf(leader, len, "%s", f.leader);
	return f.n_found ? CW_STACKS_LED_BY_PEER : CW_STACKS_UNKNOWN;
}

void cw_stacks_request(struct cw_stacks *s, const struct cw_caller *caller, const json_t *arguments,
		       cw_stacks_fn fn, void *user)
{
	struct request *q = calloc(1, sizeof(*q));
	struct search f = search_for(s, caller, arguments);

	if (!q)
		return; /* out of memory: the caller has a deadline and will report it */
	q->owner = s;
	q->uid = caller->uid;
	q->fn = fn;
	q->user = user;
	if (find_job(&f, q) && is_allowed(s, q))
		begin(q, &f);
	cw_snapshot_free(f.snap);
	DL_APPEND(s->requests, q);
}

static void make_answer(const struct request *q, struct cw_control_answer *a)
{
	json_t *evidence = json_array();
	json_t *doc = cw_stack_collection_doc(q->collection);
	int bad = !doc || !evidence;

	bad |= json_object_set_new(doc, "job", cw_json_text(q->job));
	bad |= json_object_set_new(doc, "note", cw_json_text(q->note));
	bad |= json_object_set_new(doc, "ages", cw_stack_collection_ages(q->collection));
	bad |= cw_stack_collection_add_evidence(q->collection, evidence);
	bad |= json_object_set(doc, "evidence", evidence);
	json_decref(evidence);
	if (json_dumpb(doc, NULL, 0, JSON_COMPACT) > MAX_JSON)
		/* We can omit it, because the stack trees have the same stacks. */
		(void)json_object_del(doc, "evidence");
	a->code = cw_json_int(doc, "seen", 0) > 0 ? CODE_OK : CODE_NO_DATA;
	a->json = bad ? NULL : cw_json_write(doc, JSON_COMPACT);
	if (!a->json || strlen(a->json) > MAX_JSON) {
		a->code = CODE_ERROR;
		(void)snprintf(a->error, sizeof(a->error), "%s",
			       a->json ? "the answer is too large for a message: ask for one rank"
				       : "the daemon is out of memory");
		free(a->json);
		a->json = NULL;
	}
	json_decref(doc);
}

static void finish(struct request *q)
{
	struct cw_control_answer answer = { .code = q->code };
	cw_stacks_fn fn = q->fn;
	void *user = q->user;

	(void)snprintf(answer.error, sizeof(answer.error), "%s", q->error);
	if (q->collection)
		make_answer(q, &answer);
	drop(q);
	fn(&answer, user);
	cw_control_answer_fini(&answer);
}

void cw_stacks_request_tick(struct cw_stacks *s)
{
	struct request *q, *tmp;

	DL_FOREACH_SAFE (s->requests, q, tmp) {
		if (q->collection) {
			cw_stack_collection_tick(q->collection);
			if (cw_clock_awake_ns(s->config.clock) >= q->end_ns)
				cw_stack_collection_stop(q->collection, "no answer in time");
			if (!cw_stack_collection_is_complete(q->collection))
				continue;
		}
		finish(q);
	}
}

bool cw_stacks_request_is_idle(const struct cw_stacks *s)
{
	return !s->requests;
}
