/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first answer with a document becomes the merged document. We join lists of incidents and sort
 * them by time. We append lists of jobs. For the other verbs, the answer of the first node that
 * knows the job or id counts. The merged document names the nodes that did not answer. If memory
 * runs out, we report an error, because a document with a missing part would look complete.
 */
#include "daemon/control/control_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_whole.h"
#include "daemon/control/comms_doc.h"
#include "daemon/control/status_doc.h"
#include "daemon/control/summaries_doc.h"
#include "identity/job_label.h"
#include "report/json_util.h"

/* Limits of the merged list. It must fit into a message, and no user reads more. */
#define MAX_BYTES (CW_MSG_MAX_STRING - 4096)
#define MAX_INCIDENTS 4096u
/*
 * Maximum number of jobs in a list, and of jobs from one node. An entry has at most some 500 bytes.
 */
#define MAX_JOBS 900u
#define MAX_JOBS_OF_NODE 16u
/* Maximum number of bytes by which a job's entry grows if its leader does not answer. */
#define MAX_EXPLANATION 256u
/* Largest number of omitted entries that we believe a node. We add up these numbers. */
#define MAX_OMITTED 1000000000

enum { CODE_OK = 0, CODE_ERROR = 1, CODE_NO_DATA = 3 };

static json_t *parse(const char *json)
{
	return cw_json_parse_text(json, JSON_REJECT_DUPLICATES);
}

/* ---- incidents ---- */

/*
 * True if the incident is not in the list yet. We compare uid and id together. The id alone does
 * not suffice, because another node may send any id.
 */
static bool is_new(struct cw_merge *m, const json_t *entry)
{
	const char *id = json_string_value(json_object_get(entry, "id"));
	const json_t *uid = json_object_get(entry, "uid");
	char key[128];

	if (!id)
		return false;
	(void)snprintf(key, sizeof(key), "%lld %.64s",
		       json_is_integer(uid) ? (long long)json_integer_value(uid) : -1, id);
	if (json_object_get(m->listed, key))
		return false;
	(void)json_object_set_new(m->listed, key, json_true());
	return true;
}

static void note_own(struct cw_merge *m)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_object_get(m->doc, "incidents"), i, entry)
		(void)is_new(m, entry);
}

static void add_omitted(struct cw_merge *m, json_int_t n)
{
	json_int_t before = json_integer_value(json_object_get(m->doc, "omitted"));

	if (n > 0 && n <= MAX_OMITTED - before)
		(void)json_object_set_new(m->doc, "omitted", json_integer(before + n));
}

/*
 * Adds the incidents of a node. If a job's leader has changed, two nodes have a bundle of one
 * incident. We then list the bundle of the node that answered first.
 */
static void add_incidents(struct cw_merge *m, const json_t *doc)
{
	json_t *list = json_object_get(m->doc, "incidents"), *entry;
	const json_t *more = json_object_get(doc, "incidents");
	json_int_t omitted = 0;
	size_t i;

	json_array_foreach (more, i, entry) {
		if (!is_new(m, entry))
			continue;
		if (json_array_size(list) < MAX_INCIDENTS)
			(void)json_array_append(list, entry);
		else
			omitted++;
	}
	add_omitted(m, omitted);
	add_omitted(m, json_integer_value(json_object_get(doc, "omitted")));
}

static int newest_first(const void *a, const void *b)
{
	const char *x = json_string_value(json_object_get(*(json_t *const *)a, "time"));
	const char *y = json_string_value(json_object_get(*(json_t *const *)b, "time"));

	return strcmp(y ? y : "", x ? x : "");
}

static void sort_incidents(struct cw_merge *m)
{
	json_t *doc = m->doc;
	json_t *list = json_object_get(doc, "incidents"), *sorted = json_array();
	size_t n = json_array_size(list);
	json_t **entries = calloc(n + 1, sizeof(json_t *));

	for (size_t i = 0; entries && i < n; i++)
		entries[i] = json_array_get(list, i);
	if (entries)
		qsort(entries, n, sizeof(json_t *), newest_first);
	for (size_t i = 0; entries && i < n; i++)
		(void)json_array_append(sorted, entries[i]);
	while (json_dumpb(sorted, NULL, 0, JSON_COMPACT) > MAX_BYTES)
		for (size_t keep = json_array_size(sorted) / 2; json_array_size(sorted) > keep;)
			(void)json_array_remove(sorted, json_array_size(sorted) - 1);
	add_omitted(m, entries ? (json_int_t)(n - json_array_size(sorted)) : 0);
	m->is_short = m->is_short || !entries;
	if (entries && sorted)
		(void)json_object_set(doc, "incidents", sorted);
	json_decref(sorted);
	free(entries);
}

/* ---- status ---- */

static bool is_led_elsewhere(const json_t *job)
{
	return strcmp(cw_json_str(job, "state", ""), "led_elsewhere") == 0;
}

static bool is_led_by(const json_t *job, const char *node)
{
	return is_led_elsewhere(job) && strcmp(cw_json_str(job, "leader", ""), node) == 0;
}

static void set_leader_answer(json_t *job, const char *answer)
{
	(void)json_object_set_new(job, "leader_answer", json_string(answer));
}

static void note_silent_leader(struct cw_merge *m, const char *node)
{
	json_t *job;
	size_t i;

	json_array_foreach (json_object_get(m->doc, "jobs"), i, job)
		if (is_led_by(job, node))
			set_leader_answer(job, "silent");
}

static void note_silent(struct cw_merge *m, const char *node)
{
	if (m->verb == CW_MERGE_STATUS)
		note_silent_leader(m, node);
	if (m->n_silent++ < CW_MERGE_MAX_SILENT)
		(void)json_array_append_new(m->silent, json_string(node));
}

/* ---- jobs ---- */

/* Adds a node's jobs to the list. A limit per node leaves room for the jobs of other nodes. */
static void add_jobs(struct cw_merge *m, const char *node, const json_t *more)
{
	json_t *list = json_object_get(m->doc, "jobs"), *entry;
	size_t i;

	json_array_foreach (more, i, entry) {
		const json_t *uid = json_object_get(entry, "uid");
		const char *job = json_string_value(json_object_get(entry, "job"));

		if (i == MAX_JOBS_OF_NODE || json_array_size(list) == MAX_JOBS) {
			/* Name the node, because the list lacks some of its jobs. */
			note_silent(m, node);
			break;
		}
		if (!job || strlen(job) >= CW_JOB_LABEL_BYTES || !json_is_integer(uid) ||
		    json_integer_value(uid) < 0 || json_integer_value(uid) > UINT32_MAX)
			continue;
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:O}", "node", node, "job", job, "uid", uid));
	}
}

/* Adds a node's list of living jobs to our own. */
static void add_living(struct cw_merge *m, const json_t *more)
{
	json_t *list = json_object_get(m->doc, "living"), *entry;
	size_t i;

	if (!json_is_array(list))
		return;
	json_array_foreach (more, i, entry) {
		json_int_t uid = cw_json_int(entry, "uid", -1);
		json_int_t since_ns = cw_json_int(entry, "since_ns", 0);
		const char *job = cw_json_str(entry, "job", "");

		if (i == MAX_JOBS_OF_NODE)
			break;
		if (*job && strlen(job) < CW_JOB_LABEL_BYTES && uid >= 0 && uid <= UINT32_MAX &&
		    since_ns > 0)
			(void)cw_summaries_living_add(list, job, uid, since_ns);
	}
}

/*
 * The fields of a job that we take from its leader, with their types. The leader knows them better
 * than other nodes.
 */
static const struct {
	const char *name;
	json_type type;
	bool may_be_null;
} led_fields[] = {
	{ "ranks", JSON_INTEGER, false },
	{ "ranks_expected", JSON_INTEGER, true },
	{ "nodes", JSON_ARRAY, false },
	{ "comms", JSON_INTEGER, true },
	{ "state", JSON_STRING, false },
	{ "since_s", JSON_REAL, false },
	{ "summary", JSON_STRING, false },
	{ "incident", JSON_STRING, true },
	{ "collectives", JSON_INTEGER, true },
	{ "watched_s", JSON_REAL, false },
	{ "muted", JSON_OBJECT, true },
	{ "suppressed", JSON_STRING, true },
	{ "severity", JSON_STRING, true },
	{ "slow", JSON_OBJECT, true },
	{ "late", JSON_ARRAY, false },
	{ "job_timeout", JSON_OBJECT, true },
	{ "proposed_policy", JSON_STRING, false },
	{ "pods", JSON_ARRAY, true },
};

/* True if cw_status_doc() shows this state for a job that its leader watches. */
static bool is_led_state(const char *state)
{
	static const char *const states[] = { "healthy", "suspect", "stalled", "hang" };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(states[i], state) == 0)
			return true;
	return false;
}

/*
 * Copies field i of the leader's answer to the job. Keeps a mute that only this node knows, because
 * the leader may not know it yet.
 */
static void take_field(json_t *job, const json_t *led, size_t i)
{
	json_t *value = json_object_get(led, led_fields[i].name);
	bool is_null = led_fields[i].may_be_null && json_is_null(value);

	if (strcmp(led_fields[i].name, "muted") == 0 &&
	    json_is_object(json_object_get(job, "muted")))
		return;
	if (value && (json_typeof(value) == led_fields[i].type || is_null))
		(void)json_object_set(job, led_fields[i].name, value);
}

static void take_led_job(struct cw_merge *m, json_t *job, const json_t *led)
{
	size_t bytes = json_dumpb(led, NULL, 0, JSON_COMPACT);

	if (!is_led_state(cw_json_str(led, "state", "")))
		return; /* treat this like a missing answer */
	if (bytes > m->room) {
		set_leader_answer(job, "no_room");
		return;
	}
	m->room -= bytes;
	for (size_t i = 0; i < sizeof(led_fields) / sizeof(led_fields[0]); i++)
		take_field(job, led, i);
	set_leader_answer(job, "taken");
}

/* Completes the jobs that this other node leads, from its answer. */
static void add_led_jobs(struct cw_merge *m, const char *node, const json_t *led)
{
	json_t *by_key = json_object(), *job, *one;
	char key[CW_STATUS_KEY_BYTES];
	size_t i;

	json_array_foreach (led, i, one) {
		cw_status_key(cw_json_int(one, "uid", -1), cw_json_str(one, "job", ""), key);
		(void)json_object_set(by_key, key, one);
	}
	json_array_foreach (json_object_get(m->doc, "jobs"), i, job) {
		if (!is_led_by(job, node))
			continue;
		cw_status_key(cw_json_int(job, "uid", -1), cw_json_str(job, "job", ""), key);
		one = json_object_get(by_key, key);
		if (one)
			take_led_job(m, job, one);
		else
			set_leader_answer(job, "not_led");
	}
	json_decref(by_key);
}

/* Adds the reason why the leader did not complete this job to the job's summary. */
static void explain_led_elsewhere(json_t *job)
{
	static const char *const whys[][2] = {
		{ "silent", "and did not answer; run `collwatch status` there" },
		{ "not_asked", "and has not been asked; try again in a few seconds, or run "
			       "`collwatch status` there" },
		{ "not_led", "by election and does not list it: its ranks have ended, or the job "
			     "is new there" },
		{ "no_room", "and its answer does not fit; run `collwatch status` there" },
	};
	const char *answer = cw_json_str(job, "leader_answer", NULL);
	char text[256];

	if (!is_led_elsewhere(job))
		return;
	if (!answer) {
		answer = "not_asked";
		set_leader_answer(job, answer);
	}
	for (size_t i = 0; i < sizeof(whys) / sizeof(whys[0]); i++) {
		if (strcmp(whys[i][0], answer) != 0)
			continue;
		(void)snprintf(text, sizeof(text), "%.64s leads this job %s",
			       cw_json_str(job, "leader", "?"), whys[i][1]);
		(void)json_object_set_new(job, "summary", cw_json_text(text));
	}
}

static void explain_all_led_elsewhere(struct cw_merge *m)
{
	json_t *job;
	size_t i;

	json_array_foreach (json_object_get(m->doc, "jobs"), i, job)
		explain_led_elsewhere(job);
}

/* ---- all verbs ---- */

static void note_failures(struct cw_merge *m, unsigned before)
{
	m->is_short = m->is_short || cw_json_failures() != before;
}

void cw_control_merge_begin(struct cw_merge *m, enum cw_merge_verb verb,
			    struct cw_control_answer *local)
{
	unsigned failures = cw_json_failures();

	*m = (struct cw_merge){ .verb = verb, .silent = json_array(), .listed = json_object() };
	note_failures(m, failures);
	if (!local)
		return;
	m->answer = *local;
	*local = (struct cw_control_answer){ 0 };
	if (m->answer.json)
		m->doc = parse(m->answer.json);
	if (verb == CW_MERGE_INCIDENTS)
		note_own(m);
	if (verb == CW_MERGE_STATUS && m->answer.json) {
		size_t own = strlen(m->answer.json) +
			     json_array_size(json_object_get(m->doc, "jobs")) * MAX_EXPLANATION;

		m->room = own < MAX_BYTES ? MAX_BYTES - own : 0;
	}
	note_failures(m, failures);
}

static void take_first(struct cw_merge *m, json_t *doc)
{
	json_decref(m->doc);
	m->doc = json_incref(doc);
	m->answer.code = CODE_OK;
	m->answer.error[0] = '\0';
}

/*
 * Adds a node's document. Returns true if we need no further answer. For most verbs, one answer is
 * enough.
 */
static bool add_answer(struct cw_merge *m, const char *node, json_t *doc)
{
	json_t *nodes;

	switch (m->verb) {
	case CW_MERGE_INCIDENTS:
		add_incidents(m, doc);
		return false;
	case CW_MERGE_COMMUNICATORS:
		cw_comms_doc_merge(m->doc, doc);
		return false;
	case CW_MERGE_SUMMARIES:
		/*
		 * If we have no document, this node does not know the job, and we have asked just
		 * one node.
		 */
		if (!m->doc) {
			take_first(m, doc);
			return true;
		}
		add_jobs(m, node, json_object_get(doc, "jobs"));
		add_living(m, json_object_get(doc, "living"));
		return false;
	case CW_MERGE_STATUS:
		add_led_jobs(m, node, json_object_get(doc, "jobs"));
		return false;
	case CW_MERGE_MUTE:
		if (!m->doc)
			take_first(m, doc);
		nodes = json_object_get(m->doc, "nodes");
		if (!nodes) {
			nodes = json_array();
			(void)json_object_set_new(m->doc, "nodes", nodes);
		}
		(void)json_array_append_new(nodes, json_string(node));
		return false;
	default:
		take_first(m, doc);
		return true;
	}
}

static bool add_reply(struct cw_merge *m, const char *node, const struct cw_msg_node_reply *reply)
{
	bool is_enough = false;
	json_t *doc;

	if (!reply) {
		note_silent(m, node);
		return false;
	}
	/* The answer has no document. The node has nothing to add, or it failed. */
	if (!*reply->json) {
		if (reply->code == CODE_NO_DATA)
			return false;
		if (m->verb != CW_MERGE_STACKS && (m->verb != CW_MERGE_SUMMARIES || m->doc)) {
			note_silent(m, node);
		} else if (!m->doc) {
			m->answer.code = reply->code;
			(void)snprintf(m->answer.error, sizeof(m->answer.error), "%.60s: %.180s",
				       node, reply->error);
		}
		return false;
	}
	doc = parse(reply->json);
	if (json_is_object(doc))
		is_enough = add_answer(m, node, doc);
	else
		note_silent(m, node);
	json_decref(doc);
	if (is_enough)
		m->answer.code = reply->code;
	return is_enough;
}

bool cw_control_merge_add(struct cw_merge *m, const char *node,
			  const struct cw_msg_node_reply *reply)
{
	unsigned failures = cw_json_failures();
	bool is_enough = add_reply(m, node, reply);

	note_failures(m, failures);
	return is_enough;
}

void cw_control_merge_not_asked(struct cw_merge *m, unsigned n)
{
	m->n_not_asked = n;
}

/*
 * Notes in the document that we did not ask other nodes. If there is no document, notes it in the
 * error.
 */
static void add_not_asked(struct cw_merge *m)
{
	const char *which = m->n_not_asked == 1 ? "the other node was" : "the other nodes were";
	size_t len = strlen(m->answer.error);

	if (!m->n_not_asked)
		return;
	if (m->doc) {
		(void)json_object_set_new(m->doc, "not_asked",
					  json_integer((json_int_t)m->n_not_asked));
		return;
	}
	if (!len)
		m->answer.code = CODE_ERROR;
	(void)snprintf(m->answer.error + len, sizeof(m->answer.error) - len,
		       "%s%s not asked: too many requests are running, try again in a few seconds",
		       len ? "; " : "", which);
}

/* Names the silent nodes. Without their names the document would look complete. */
static void name_silent(struct cw_merge *m)
{
	const char *first = json_string_value(json_array_get(m->silent, 0));
	size_t len = strlen(m->answer.error);

	if (m->doc) {
		(void)json_object_set(m->doc, "silent", m->silent);
		(void)json_object_set_new(m->doc, "silent_count",
					  json_integer((json_int_t)m->n_silent));
	} else if (m->n_silent && first) {
		(void)snprintf(m->answer.error + len, sizeof(m->answer.error) - len,
			       "%s; %.64s%s could not be asked", len ? "" : "not known here", first,
			       m->n_silent > 1 ? " and others" : "");
	}
}

void cw_control_merge_end(struct cw_merge *m, struct cw_control_answer *ret)
{
	bool is_exact = m->verb == CW_MERGE_SUMMARIES || m->verb == CW_MERGE_REPORT;
	int digits = is_exact ? CW_CONTROL_EXACT : 10;
	unsigned failures = cw_json_failures();

	if (m->verb == CW_MERGE_INCIDENTS)
		sort_incidents(m);
	if (m->verb == CW_MERGE_STATUS)
		explain_all_led_elsewhere(m);
	if (m->verb != CW_MERGE_STATUS) { /* in a status, each job names its silent leader */
		if (m->verb != CW_MERGE_REPORT || !m->doc)
			name_silent(m);
		add_not_asked(m);
	}
	if (m->doc) {
		free(m->answer.json);
		m->answer.json = cw_json_write(m->doc, JSON_COMPACT | JSON_REAL_PRECISION(digits));
	}
	note_failures(m, failures);
	if (m->is_short || (m->doc && !m->answer.json)) {
		free(m->answer.json);
		m->answer.json = NULL;
		m->answer.code = CODE_ERROR;
		(void)snprintf(m->answer.error, sizeof(m->answer.error),
			       "the daemon is out of memory");
	}
	*ret = m->answer;
	json_decref(m->doc);
	json_decref(m->silent);
	json_decref(m->listed);
	*m = (struct cw_merge){ 0 };
}
