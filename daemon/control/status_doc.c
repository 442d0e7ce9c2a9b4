/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/status_doc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/stall/stall.h"
#include "common/commit.h"
#include "common/parse.h"
#include "daemon/control/control_mute.h"
#include "daemon/control/ops_doc.h"
#include "identity/untracked.h"
#include "model/verdict_types.h"
#include "report/json_util.h"
#include "report/status_note.h"

struct collector {
	const struct cw_status_source *source;
	const struct cw_caller *caller;
	json_t *jobs; /* NULL = memory ran out */
	int64_t now_ns;
	/*
	 * Only for queries of other nodes. wanted: the keys of the wanted jobs. max_bytes: the size
	 * limit for these jobs; 0 = all jobs, without a limit.
	 */
	const json_t *wanted;
	size_t bytes, max_bytes;
};

static double seconds(int64_t ns)
{
	return (double)(ns / CW_NS_PER_MS) / 1000.0;
}

/*
 * Adds the fields about alerts, which do not depend on the job's leader. If memory runs out,
 * cw_control_handle() notices it.
 */
static void add_alerts(const struct collector *c, json_t *job, uint32_t uid, const char *label,
		       const struct cw_incident *inc)
{
	const char *suppressed = inc ? cw_incident_suppressed(inc) : NULL;

	(void)json_object_set_new(job, "muted",
				  cw_control_mute_doc(c->source->mutes, uid, label,
						      cw_transport_self(c->source->transport)));
	(void)json_object_set_new(job, "suppressed",
				  suppressed ? json_string(suppressed) : json_null());
	(void)json_object_set_new(job, "severity",
				  inc ? json_string(cw_severity_name(cw_incident_severity(inc)))
				      : json_null());
}

/* Adds the last stall that ended by itself to the job. */
static void add_slow(const struct collector *c, json_t *job, const struct cw_job_view *view)
{
	json_t *slow = json_null();

	if (view->slow_for_ns)
		slow = json_pack("{s:f, s:f, s:s}", "lasted_s", seconds(view->slow_for_ns), "ago_s",
				 seconds(c->now_ns - view->slow_until_ns), "summary",
				 view->slow_what);
	(void)json_object_set_new(job, "slow", slow);
}

/* Describes the rank that is always late in a job that makes progress. */
static json_t *late_doc(const struct cw_late_rank *late, int64_t now_ns)
{
	const struct cw_slow *s = &late->said;
	char comm[24], summary[512];

	(void)snprintf(comm, sizeof(comm), "0x%" PRIx64, late->comm);
	cw_late_rank_format(late, summary, sizeof(summary));
	return json_pack("{s:o, s:i, s:s, s:i, s:s, s:s, s:I, s:I, s:f, s:f, s:s, s:f}", "summary",
			 cw_json_text(summary), "rank", (int)late->rank, "host", late->host, "pid",
			 (int)late->pid, "comm", comm, "comm_name", late->comm_name, "collectives",
			 (json_int_t)s->n_ops, "waited_for", (json_int_t)s->n_late, "late_s",
			 (double)s->late_ns / 1e9, "share", s->percent / 100.0, "confidence",
			 cw_confidence_name(s->confidence), "since_s",
			 seconds(cw_age_ns(now_ns, late->since_ns)));
}

static void add_late(const struct collector *c, json_t *job, const struct cw_late_ranks *late)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < late->n; i++)
		if (cw_late_rank_is_confirmed(&late->v[i]))
			(void)json_array_append_new(list, late_doc(&late->v[i], c->now_ns));
	(void)json_object_set_new(job, "late", list);
}

/* Adds the time limit of the job's own watchdog, which ends the job. */
static void add_timeout(json_t *job, const struct cw_job_view *view)
{
	json_t *timeout = json_null();

	if (view->job_timeout_ns)
		timeout = json_pack("{s:f, s:b}", "seconds", seconds(view->job_timeout_ns),
				    "assumed", view->is_timeout_assumed);
	if (*view->job_timeout_source)
		(void)json_object_set_new(timeout, "set_by", json_string(view->job_timeout_source));
	(void)json_object_set_new(job, "job_timeout", timeout);
}

/*
 * Adds our proposal to use the policy "serving", if we have made it. We make it only once per job.
 */
static void add_proposal(json_t *doc, const struct cw_job *job)
{
	if (cw_stall_has_proposed_serving(job->stall))
		(void)json_object_set_new(doc, "proposed_policy", json_string("serving"));
}

/* Adds the job's pods. pods: one per line; "" = the job runs in no pod. */
static void add_pods(json_t *job, const char *pods)
{
	json_t *list = *pods ? json_array() : json_null();

	for (const char *end; list && (end = strchr(pods, '\n')); pods = end + 1)
		(void)json_array_append_new(list, json_stringn(pods, (size_t)(end - pods)));
	(void)json_object_set_new(job, "pods", list);
}

static void append(struct collector *c, json_t *job)
{
	if (c->jobs && (!job || json_array_append_new(c->jobs, job) < 0)) {
		json_decref(c->jobs);
		c->jobs = NULL;
	} else if (!c->jobs) {
		json_decref(job);
	}
}

static const char *state_name(uint32_t phase)
{
	static const char *const names[] = {
		[CW_STALL_QUIET] = "healthy",
		[CW_STALL_SUSPECT] = "suspect",
		[CW_STALL_STALLED] = "stalled",
		[CW_STALL_HANG] = "hang",
	};

	return phase <= CW_STALL_HANG ? names[phase] : "suspect";
}

static json_t *node_names(const struct cw_job_digests *digests)
{
	json_t *names = json_array();

	for (unsigned i = 0; names && i < digests->n_nodes; i++)
		if (json_array_append_new(names, json_string(digests->nodes[i].name)) < 0) {
			json_decref(names);
			return NULL;
		}
	return names;
}

void cw_status_key(int64_t uid, const char *label, char key[CW_STATUS_KEY_BYTES])
{
	(void)snprintf(key, CW_STATUS_KEY_BYTES, "%" PRId64 " %s", uid, label);
}

static bool is_wanted(const struct collector *c, const struct cw_job_digests *digests)
{
	char key[CW_STATUS_KEY_BYTES];

	if (!c->max_bytes)
		return true;
	cw_status_key(digests->uid, digests->label, key);
	return json_object_get(c->wanted, key) != NULL;
}

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	struct collector *c = user;
	const struct cw_job_view *view = &job->view;
	const char *id = cw_job_incidents_id(&job->incidents);
	const struct cw_incident *inc = *id ? cw_job_incidents_find(&job->incidents, id) : NULL;
	json_t *nodes, *doc;

	if (!cw_caller_may_see(c->caller, digests->uid) || !is_wanted(c, digests))
		return;
	nodes = node_names(digests);
	doc = nodes ? json_pack("{s:s, s:I, s:s, s:b, s:I, s:I, s:o, s:I, s:s, s:f, s:s, s:o, "
				"s:I, s:f}",
				"job", digests->label, "uid", (json_int_t)digests->uid, "leader",
				cw_transport_self(c->source->transport), "led_here", 1, "ranks",
				(json_int_t)view->ranks, "ranks_expected",
				(json_int_t)view->ranks_expected, "nodes", nodes, "comms",
				(json_int_t)view->comms, "state", state_name(view->phase),
				"since_s", seconds(c->now_ns - view->since_ns), "summary",
				view->summary, "incident", *id ? json_string(id) : json_null(),
				"collectives", (json_int_t)view->collectives, "watched_s",
				seconds(c->now_ns - job->started_ns))
		    : NULL;
	add_alerts(c, doc, digests->uid, digests->label, inc);
	add_slow(c, doc, view);
	add_late(c, doc, &job->late);
	add_timeout(doc, view);
	add_proposal(doc, job);
	add_pods(doc, view->pods);
	c->bytes += c->max_bytes ? json_dumpb(doc, NULL, 0, JSON_COMPACT) : 0;
	if (c->bytes > c->max_bytes)
		json_decref(doc);
	else
		append(c, doc);
}

/*
 * Explains why the job is untracked, or some of its ranks on this node. Returns false if all ranks
 * are tracked.
 */
static bool describe_untracked(const struct collector *c, const struct cw_election_job *job,
			       bool is_led_here, char *buf, size_t len)
{
	const struct cw_status_source *s = c->source;
	uint32_t here =
		s->ranks ? cw_untracked_of_job(cw_node_untracked(s->ranks), job->uid, job->label)
			 : 0;

	if (job->standing == CW_STANDING_OVER_QUOTA ||
	    (is_led_here &&
	     cw_untracked_of_job(cw_leader_untracked(s->leader), job->uid, job->label)))
		(void)snprintf(buf, len,
			       "not watched: %s leads the maximum number of jobs, and users share "
			       "this limit",
			       job->leader);
	else if (!job->ranks_here && here)
		(void)snprintf(buf, len,
			       "not watched here: this node watches the maximum number of rank "
			       "processes, and users share this limit");
	else
		return false;
	return true;
}

static void on_local_job(const struct cw_election_job *job, void *user)
{
	struct collector *c = user;
	bool is_led_here, is_untracked;
	char summary[256];
	json_t *doc;

	is_led_here = !strcmp(job->leader, cw_transport_self(c->source->transport));
	if (!cw_caller_may_see(c->caller, job->uid))
		return;
	is_untracked = describe_untracked(c, job, is_led_here, summary, sizeof(summary));
	if (is_led_here && !is_untracked)
		return; /* on_job() adds this job */
	if (!is_untracked)
		(void)snprintf(summary, sizeof(summary),
			       "%s leads this job; run `collwatch status` there", job->leader);
	doc = json_pack("{s:s, s:I, s:s, s:b, s:I, s:n, s:[], s:n, s:s, s:f, s:s, s:n, s:n, s:f}",
			"job", job->label, "uid", (json_int_t)job->uid, "leader", job->leader,
			"led_here", is_led_here, "ranks", (json_int_t)job->ranks_here,
			"ranks_expected", "nodes", "comms", "state",
			is_untracked ? "untracked" : "led_elsewhere", "since_s",
			seconds(c->now_ns - job->since_ns), "summary", summary, "incident",
			"collectives", "watched_s", seconds(c->now_ns - job->since_ns));
	add_pods(doc, "");
	add_alerts(c, doc, job->uid, job->label, NULL);
	append(c, doc);
}

static json_t *peers_doc(const struct cw_transport *t)
{
	static const char *const names[CW_PEER__MAX] = { "never_seen", "connected", "lost",
							 "said_goodbye" };
	const struct cw_peer *peers;
	json_t *array = json_array();
	unsigned n;

	peers = cw_transport_peers(t, &n);
	for (unsigned i = 0; array && i < n; i++) {
		unsigned refusal = peers[i].state != CW_PEER_CONNECTED ? peers[i].refusal
								       : CW_PEER_NOT_REFUSED;
		const char *state = names[peers[i].state];
		char refused[64];

		if (refusal) {
			(void)snprintf(refused, sizeof(refused), "refused: %s",
				       cw_peer_refusal_words(refusal));
			state = refused;
		}
		if (peers[i].state == CW_PEER_CONNECTED && !cw_transport_is_alive(t, peers[i].name))
			state = "silent";
		if (json_array_append_new(array, json_pack("{s:s, s:s, s:s*, s:I}", "node",
							   peers[i].name, "state", state, "refusal",
							   cw_peer_refusal_name(refusal), "dropped",
							   (json_int_t)peers[i].dropped)) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static const char *reload_name(uint32_t result)
{
	static const char *const names[] = {
		[CW_RELOAD_DONE] = "done",
		[CW_RELOAD_NEEDS_RESTART] = "needs_restart",
		[CW_RELOAD_REFUSED] = "refused",
	};

	return result > CW_RELOAD_NONE && result <= CW_RELOAD_REFUSED ? names[result] : NULL;
}

/*
 * Returns the result of the last reload of the configuration. Only callers with sees_all get the
 * reason of a failure. It may quote the file, which may hold secrets.
 */
static json_t *reload_doc(const struct cw_status_source *s, const struct cw_caller *caller)
{
	const struct cw_reload_state *reload = s->reload;
	const char *name = reload ? reload_name(reload->result) : NULL;

	if (!name)
		return json_null();
	return json_pack("{s:s, s:f, s:o}", "result", name, "ago_s",
			 seconds(cw_clock_now_ns(s->clock) - reload->at_ns), "why",
			 caller->sees_all && *reload->why ? cw_json_text(reload->why)
							  : json_null());
}

/*
 * Writes a sentence about a reload that did not take effect. Returns false if there is no such
 * reload.
 */
static bool describe_reload(const struct cw_status_source *s, const struct cw_caller *caller,
			    char *buf, size_t len)
{
	const struct cw_reload_state *reload = s->reload;
	char ago[64];

	if (!reload || !reload_name(reload->result) || reload->result == CW_RELOAD_DONE)
		return false;
	(void)cw_format_duration(cw_clock_now_ns(s->clock) - reload->at_ns, ago, sizeof(ago));
	if (reload->result == CW_RELOAD_NEEDS_RESTART)
		(void)snprintf(
			buf, len,
			"the reload of %s ago changed nothing, because a key needs a restart "
			"(%s): the old configuration is in use",
			ago, caller->sees_all ? reload->why : "only root sees the key");
	else
		(void)snprintf(
			buf, len,
			"the reload of %s ago failed (%s): the old configuration is in use. "
			"Correct the file, check it with `collwatchd --check-config`, and reload",
			ago, caller->sees_all ? reload->why : "only root sees the reason");
	return true;
}

/*
 * The notes of the status: their sentences, and their names in the same order. NULL = memory ran
 * out.
 */
struct notes {
	json_t *texts, *names;
};

static void add_note(struct notes *notes, enum cw_status_note note, const char *text)
{
	if (json_array_append_new(notes->texts, cw_json_text(text)) < 0 ||
	    json_array_append_new(notes->names, json_string(cw_status_note_name(note))) < 0) {
		json_decref(notes->texts);
		json_decref(notes->names);
		*notes = (struct notes){ 0 };
	}
}

static void add_node_notes(const struct cw_status_source *s, struct notes *notes)
{
	char text[512];

	if (s->node.unreadable_total) {
		(void)snprintf(
			text, sizeof(text),
			"agents of %llu rank process%s have a version that this daemon cannot "
			"read: those ranks are not watched; update collwatch on this node",
			(unsigned long long)s->node.unreadable_total,
			s->node.unreadable_total == 1 ? "" : "es");
		add_note(notes, CW_NOTE_AGENT_VERSION, text);
	}
	if (s->node.no_record_total) {
		(void)snprintf(text, sizeof(text),
			       "agents of %llu rank process%s could not make a flight record (%s): "
			       "those ranks are not watched; raise the limit or loosen the sandbox",
			       (unsigned long long)s->node.no_record_total,
			       s->node.no_record_total == 1 ? "" : "es",
			       strerror(s->node.no_record_error));
		add_note(notes, CW_NOTE_NO_RECORD, text);
	}
}

static void add_store_notes(const struct cw_status_source *s, struct notes *notes)
{
	struct cw_store_stats store = { 0 };
	char text[512];

	if (s->store)
		cw_store_stats(s->store, &store);
	if (store.error) {
		(void)snprintf(
			text, sizeof(text),
			"the state directory cannot be used (%s): incidents and mutes cannot "
			"be written to disk, they are kept in memory",
			strerror(store.error));
		add_note(notes, CW_NOTE_STATE_NOT_WRITABLE, text);
	}
	if (store.waiting) {
		(void)snprintf(text, sizeof(text),
			       "%u bundle%s cannot be written to disk: kept in memory, tried again",
			       store.waiting, store.waiting == 1 ? "" : "s");
		add_note(notes, CW_NOTE_BUNDLES_WAITING, text);
	}
}

static struct notes notes_doc(const struct cw_status_source *s, const struct cw_caller *caller)
{
	struct notes notes = { .texts = json_array(), .names = json_array() };
	char text[512];
	unsigned n;

	(void)cw_transport_peers(s->transport, &n);
	if (n == 0 && cw_transport_finds_peers(s->transport))
		add_note(&notes, CW_NOTE_FOUND_NOBODY, CW_STATUS_FOUND_NOBODY);
	else if (n == 0)
		add_note(&notes, CW_NOTE_ALONE, CW_STATUS_ALONE);
	if (*s->peers_note)
		add_note(&notes, CW_NOTE_PEERS_FROM, s->peers_note);
	if (s->is_shadow)
		add_note(&notes, CW_NOTE_SHADOW, CW_STATUS_SHADOW);
	if (describe_reload(s, caller, text, sizeof(text)))
		add_note(&notes, CW_NOTE_RELOAD, text);
	if (s->accept.last_ns &&
	    cw_clock_now_ns(s->clock) - s->accept.last_ns < CW_ACCEPT_SAY_S * CW_NS_PER_S)
		add_note(&notes, CW_NOTE_ACCEPT, CW_STATUS_ACCEPT);
	if (s->no_kernel_events) {
		(void)snprintf(text, sizeof(text), CW_STATUS_NO_KERNEL "%s", s->no_kernel_events);
		add_note(&notes, CW_NOTE_NO_KERNEL_EVENTS, text);
	}
	if (s->log_lost) {
		(void)snprintf(text, sizeof(text),
			       "%llu line%s of this daemon's log %s lost, because the journal or "
			       "the reader of its stderr did not read: check systemd-journald",
			       (unsigned long long)s->log_lost, s->log_lost == 1 ? "" : "s",
			       s->log_lost == 1 ? "was" : "were");
		add_note(&notes, CW_NOTE_LOG_LOST, text);
	}
	add_node_notes(s, &notes);
	add_store_notes(s, &notes);
	return notes;
}

/*
 * Maximum number of users that we list as untracked. A user's sentence takes up to 1 KiB, and the
 * whole status 1 MiB. Callers always see their own entry.
 */
#define MAX_UNTRACKED_USERS 64u

struct untracked_doc {
	const struct cw_caller *caller;
	const char *what;
	json_t *array; /* NULL = memory ran out */
};

static void on_untracked_user(const struct cw_untracked_user *of, void *user)
{
	struct untracked_doc *doc = user;
	json_t *one;

	if (!doc->array || !cw_caller_may_see(doc->caller, of->uid) ||
	    json_array_size(doc->array) >= MAX_UNTRACKED_USERS)
		return;
	one = json_pack("{s:s, s:I, s:I, s:o}", "what", doc->what, "uid", (json_int_t)of->uid,
			"count", (json_int_t)of->n, "summary", cw_json_text(of->sentence));
	if (json_array_append_new(doc->array, one) < 0) {
		json_decref(doc->array);
		doc->array = NULL;
	}
}

/* Lists the untracked jobs and processes of users that the caller may see. NULL = out of memory. */
static json_t *untracked_doc(const struct cw_status_source *s, const struct cw_caller *caller)
{
	struct untracked_doc doc = { .caller = caller, .what = "jobs", .array = json_array() };

	cw_untracked_each_user(cw_leader_untracked(s->leader), on_untracked_user, &doc);
	doc.what = "rank_processes";
	if (s->ranks)
		cw_untracked_each_user(cw_node_untracked(s->ranks), on_untracked_user, &doc);
	return doc.array;
}

json_t *cw_status_led_doc(const struct cw_status_source *s, const struct cw_caller *caller,
			  const json_t *wanted, size_t max_bytes)
{
	struct collector c = { .source = s,
			       .caller = caller,
			       .jobs = json_array(),
			       .now_ns = cw_clock_now_ns(s->clock),
			       .wanted = wanted,
			       .max_bytes = max_bytes };

	cw_leader_jobs(s->leader, on_job, &c);
	return c.jobs ? json_pack("{s:s, s:s, s:o}", "schema", "collwatch.status_led/1", "node",
				  cw_transport_self(s->transport), "jobs", c.jobs)
		      : NULL;
}

json_t *cw_status_doc(const struct cw_status_source *s, const struct cw_caller *caller)
{
	struct collector c = { .source = s, .caller = caller, .jobs = json_array() };
	json_t *peers = peers_doc(s->transport);
	struct notes notes = notes_doc(s, caller);
	json_t *tensors = cw_ops_doc_tensors(s->ranks, cw_clock_now_ns(s->clock), caller);
	json_t *tensor_stats = cw_ops_doc_tensor_stats(s->ranks, cw_clock_now_ns(s->clock), caller);
	json_t *untracked = untracked_doc(s, caller);

	c.now_ns = cw_clock_now_ns(s->clock);
	cw_leader_jobs(s->leader, on_job, &c);
	cw_election_each(s->members, on_local_job, &c);
	if (!c.jobs || !peers || !notes.texts || !notes.names || !tensors || !tensor_stats ||
	    !untracked) {
		json_decref(c.jobs);
		json_decref(peers);
		json_decref(notes.texts);
		json_decref(notes.names);
		json_decref(tensors);
		json_decref(tensor_stats);
		json_decref(untracked);
		return NULL;
	}
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:f, s:o, s:o, s:o, s:f, s:{s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:I, s:I}, "
		"s:o, s:o, s:o, s:o, s:o}",
		"schema", "collwatch.status/1", "node", cw_transport_self(s->transport), "version",
		CW_VERSION, "commit", CW_COMMIT, "uptime_s", seconds(c.now_ns - s->started_ns),
		"peers", peers, "notes", notes.texts, "note_names", notes.names, "loop_max_s",
		seconds(s->loop_max_ns), "agents", "processes", (json_int_t)s->node.processes,
		"connected", (json_int_t)s->node.connected, "dead", (json_int_t)s->node.dead,
		"refused", (json_int_t)s->node.refused_total, "deferred",
		(json_int_t)s->node.deferred_total, "waiting", (json_int_t)s->node.waiting,
		"bad_messages", (json_int_t)s->node.bad_messages_total, "record_errors",
		(json_int_t)s->node.record_errors_total, "jobs", c.jobs, "tensors", tensors,
		"tensor_stats", tensor_stats, "untracked", untracked, "reload",
		reload_doc(s, caller));
}
