/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "daemon/control/comms_doc.h"
#include "daemon/control/control_mute.h"
#include "daemon/control/ops_doc.h"
#include "daemon/control/summaries_doc.h"
#include "identity/job_id.h"
#include "proto/messages.h"
#include "report/incident_filter.h"

/*
 * Longest document: the longest string of a message, less room for its other fields and the frame's
 * header.
 */
#define MAX_JSON (CW_MSG_MAX_STRING - 1024)
#define MAX_LIST (MAX_JSON - 1024)
#define MAX_LISTED 4096
/* Maximum number of ranks of a page. The loop has time for no more. */
#define SUMMARIES_RANKS 8u

enum { CODE_OK = 0, CODE_ERROR = 1, CODE_NO_DATA = 3 };

static void fail(struct cw_control_answer *answer, uint32_t code, const char *text)
{
	answer->code = code;
	(void)snprintf(answer->error, sizeof(answer->error), "%s", text);
}

/*
 * Answers with doc, and consumes the reference to it. digits: how many digits we write for a
 * double.
 */
static void succeed_with(struct cw_control_answer *answer, json_t *doc, int digits)
{
	answer->json = doc ? cw_json_write(doc, JSON_COMPACT | JSON_REAL_PRECISION(digits)) : NULL;
	json_decref(doc);
	if (!answer->json)
		fail(answer, CODE_ERROR, "the daemon is out of memory");
	else if (strlen(answer->json) > MAX_JSON)
		fail(answer, CODE_ERROR, "the answer is too large for a message");
}

static void succeed(struct cw_control_answer *answer, json_t *doc)
{
	succeed_with(answer, doc, 10);
}

static void do_status(const struct cw_control_source *s, const struct cw_caller *caller,
		      const json_t *arguments, struct cw_control_answer *answer)
{
	struct cw_status_source source = { 0 };

	s->status(&source, s->user);
	if (caller->node)
		succeed(answer, cw_status_led_doc(&source, caller,
						  json_object_get(arguments, "jobs"), MAX_LIST));
	else
		succeed(answer, cw_status_doc(&source, caller));
}

static void do_communicators(const struct cw_control_source *s, const struct cw_caller *caller,
			     const json_t *arguments, struct cw_control_answer *answer)
{
	struct cw_status_source source = { 0 };

	s->status(&source, s->user);
	succeed(answer, cw_comms_doc(&source, caller));
}

static void do_ops(const struct cw_control_source *s, const struct cw_caller *caller,
		   const json_t *arguments, struct cw_control_answer *answer)
{
	struct cw_status_source source = { 0 };

	s->status(&source, s->user);
	succeed(answer, cw_ops_doc(source.ranks, s->node_name, caller));
}

/*
 * True if the caller may see the incident. We compare with the uid in the incident. If it has none,
 * only callers with sees_all may see it.
 */
static bool may_see_incident(const struct cw_caller *caller, const json_t *incident)
{
	const json_t *uid = json_object_get(incident, "uid");

	if (caller->sees_all)
		return true;
	return json_is_integer(uid) && json_integer_value(uid) == (json_int_t)caller->uid;
}

/*
 * Lists the newest incidents. Thousands of incidents do not fit into a message, so the oldest may
 * be missing.
 */
static void do_incidents(const struct cw_control_source *s, const struct cw_caller *caller,
			 const json_t *arguments, struct cw_control_answer *answer)
{
	json_int_t max = json_integer_value(json_object_get(arguments, "max"));
	struct cw_store_query query = {
		.is_of_all = caller->sees_all,
		.uid = caller->uid,
		.max = max > 0 && max < MAX_LISTED ? (size_t)max : MAX_LISTED,
		.max_bytes = MAX_LIST,
		.extra_bytes = strlen("\"host\":\"\",") + strlen(s->node_name),
	};
	json_t *doc, *list, *entry;
	size_t i, omitted;

	cw_incident_filter_read(arguments, &query.filter);
	list = cw_store_list(s->store, &query, &omitted);
	json_array_foreach (list, i, entry)
		(void)json_object_set_new(entry, "host", json_string(s->node_name));
	doc = json_pack("{s:s, s:o}", "schema", "collwatch.incidents/1", "incidents", list);
	if (omitted)
		(void)json_object_set_new(doc, "omitted", json_integer((json_int_t)omitted));
	succeed(answer, doc);
}

/*
 * The parts of a bundle that we send. We try these rows from the first to the last, until the parts
 * fit into a message. Stacks are more useful than the snapshot, and the snapshot is more useful
 * than tensors. The tensors of other nodes are the first to go.
 */
static const struct report_size {
	bool has_stacks, has_snapshot, has_summaries, has_remote_summaries;
} report_sizes[] = {
	{ true, true, true, true },     { true, true, true, false },  { true, true, false, false },
	{ true, false, true, true },    { true, false, true, false }, { true, false, false, false },
	{ false, false, false, false },
};

static json_int_t n_omitted(const struct cw_bundle *b, const struct report_size *size)
{
	size_t n = size->has_remote_summaries ? 0 : json_array_size(b->remote_summaries);

	return (json_int_t)(n + b->n_remote_summaries_omitted);
}

static json_t *report_doc(const struct cw_control_source *s, struct cw_bundle *b,
			  const struct report_size *size)
{
	json_t *path = json_object_get(b->incident, "bundle");
	json_t *none = json_null();
	json_t *evidence = b->evidence ? json_incref(b->evidence) : json_array();

	return json_pack(
		"{s:O, s:s, s:O, s:o, s:O, s:O, s:O, s:O, s:O, s:I}", "path", path ? path : none,
		"host", s->node_name, "incident", b->incident ? b->incident : none, "evidence",
		evidence, "snapshot", size->has_snapshot && b->snapshot ? b->snapshot : none,
		"stacks", size->has_stacks && b->stacks ? b->stacks : none, "ops",
		size->has_stacks && b->ops ? b->ops : none, "summaries",
		size->has_summaries && b->summaries ? b->summaries : none, "remote_summaries",
		size->has_remote_summaries && b->remote_summaries ? b->remote_summaries : none,
		"summaries_omitted", n_omitted(b, size));
}

static void do_report(const struct cw_control_source *s, const struct cw_caller *caller,
		      const json_t *arguments, struct cw_control_answer *answer)
{
	const char *id = json_string_value(json_object_get(arguments, "id"));
	struct cw_bundle bundle = { 0 };
	int r;

	if (!id) {
		fail(answer, CODE_ERROR, "report: the request names no incident");
		return;
	}
	r = cw_store_get(s->store, id, &bundle);
	if (r < 0 || !may_see_incident(caller, bundle.incident)) {
		/*
		 * Answer the same for an unknown id and another user's incident. Otherwise the
		 * answer would reveal that the other user has this incident.
		 */
		fail(answer, r < 0 && r != -ENOENT ? CODE_ERROR : CODE_NO_DATA,
		     r < 0 && r != -ENOENT ? strerror(-r) : "no incident with this id here");
		cw_bundle_fini(&bundle);
		return;
	}
	for (size_t i = 0; i < sizeof(report_sizes) / sizeof(report_sizes[0]); i++) {
		cw_control_answer_fini(answer);
		/* Write all digits, because a reader of this copy may compare sums bit by bit. */
		succeed_with(answer, report_doc(s, &bundle, &report_sizes[i]), CW_CONTROL_EXACT);
		if (!answer->json || answer->code == CODE_OK)
			break;
	}
	cw_bundle_fini(&bundle);
}

static void do_mute(const struct cw_control_source *s, const struct cw_caller *caller,
		    const json_t *arguments, struct cw_control_answer *answer)
{
	struct cw_status_source source = { 0 };
	struct cw_mute_answer result;

	s->status(&source, s->user);
	cw_control_mute(s->mutes, &source, caller, arguments, &result);
	if (result.code == CODE_OK)
		succeed(answer, result.doc);
	else
		fail(answer, result.code, result.error);
}

/*
 * Lists the jobs with this name that have summaries here. The caller chooses one, and then asks for
 * a page of it.
 */
static void do_summaries_jobs(const struct cw_control_source *s, const struct cw_caller *caller,
			      const char *name, struct cw_control_answer *answer)
{
	struct cw_status_source source = { 0 };
	json_t *jobs, *living;

	s->status(&source, s->user);
	jobs = cw_summaries_doc_jobs(source.ranks, s->node_name, caller, name);
	living = cw_summaries_doc_living(source.ranks, caller, name);
	succeed(answer, json_pack("{s:s, s:s, s:o, s:o}", "schema", "collwatch.summaries_jobs/1",
				  "node", s->node_name, "jobs", jobs, "living", living));
}

/*
 * Returns a page with as many ranks as fit into a message. It starts after the rank with `after_ns`
 * and `after_pid`.
 */
static void do_summaries_page(const struct cw_control_source *s, const struct cw_job_id *job,
			      const json_t *arguments, struct cw_control_answer *answer)
{
	json_t *after = json_object_get(arguments, "after_ns");
	json_int_t pid = json_integer_value(json_object_get(arguments, "after_pid"));
	struct cw_summaries_source source = { .extension = s->extension,
					      .node_name = s->node_name };
	struct cw_status_source status = { 0 };

	s->status(&status, s->user);
	source.node = status.ranks;
	source.clock = status.clock;
	for (uint32_t n = SUMMARIES_RANKS; n > 0; n /= 2) {
		struct cw_summaries_page page = {
			.is_next = json_is_integer(after),
			.after_ns = json_integer_value(after),
			.after_pid = (int32_t)pid,
			.n = n,
		};

		cw_control_answer_fini(answer);
		succeed_with(answer, cw_summaries_doc(&source, job, &page), CW_CONTROL_EXACT);
		if (!answer->json || answer->code == CODE_OK)
			break;
	}
}

static void do_summaries(const struct cw_control_source *s, const struct cw_caller *caller,
			 const json_t *arguments, struct cw_control_answer *answer)
{
	const char *label = json_string_value(json_object_get(arguments, "job"));
	const char *node = json_string_value(json_object_get(arguments, "node"));
	json_int_t uid = json_integer_value(json_object_get(arguments, "uid"));
	struct cw_job_id job;

	if (!label)
		fail(answer, CODE_ERROR, "summaries: the request names no job");
	else if (!node)
		do_summaries_jobs(s, caller, label, answer);
	else if (strcmp(node, s->node_name) != 0)
		fail(answer, CODE_NO_DATA, "that node did not answer");
	else if (uid < 0 || uid > UINT32_MAX || !cw_caller_may_see(caller, (uint32_t)uid) ||
		 cw_job_id_make((uint32_t)uid, label, &job) < 0)
		fail(answer, CODE_NO_DATA, "no such job on this node");
	else
		do_summaries_page(s, &job, arguments, answer);
}

static const struct {
	const char *name;
	void (*run)(const struct cw_control_source *s, const struct cw_caller *caller,
		    const json_t *arguments, struct cw_control_answer *answer);
} verbs[] = {
	{ "status", do_status },
	{ "ops", do_ops },
	{ "incidents", do_incidents },
	{ "report", do_report },
	{ "mute", do_mute },
	{ "summaries", do_summaries },
	{ "communicators", do_communicators },
};

void cw_control_handle(const struct cw_control_source *s, const struct cw_caller *caller,
		       const char *verb, const char *arguments, struct cw_control_answer *ret)
{
	unsigned failures = cw_json_failures();
	json_t *args = cw_json_parse_text(*arguments ? arguments : "{}", JSON_REJECT_DUPLICATES);
	char text[200];

	*ret = (struct cw_control_answer){ 0 };
	(void)snprintf(text, sizeof(text), "this daemon does not know the request '%.64s'", verb);
	if (!json_is_object(args)) {
		fail(ret, CODE_ERROR, "the arguments are not a JSON object");
	} else {
		fail(ret, CODE_ERROR, text);
		for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
			if (strcmp(verbs[i].name, verb) != 0)
				continue;
			cw_control_answer_fini(ret);
			verbs[i].run(s, caller, args, ret);
		}
	}
	json_decref(args);
	/*
	 * If memory ran out, parts of the document may be missing, and the document does not say
	 * so.
	 */
	if (cw_json_failures() != failures)
		fail(ret, CODE_ERROR, "the daemon is out of memory");
	if (ret->code == CODE_OK)
		return;
	free(ret->json);
	ret->json = NULL;
}

void cw_control_answer_fini(struct cw_control_answer *answer)
{
	free(answer->json);
	*answer = (struct cw_control_answer){ 0 };
}
