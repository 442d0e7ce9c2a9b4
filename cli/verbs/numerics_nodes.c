/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First the daemon is asked which nodes have a job of that name, which asks all of them; then each
 * of those for its ranks, page by page: what many have fits no single answer.
 */
#include "cli/verbs/numerics_nodes.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/control.h"
#include "cli/terminal/progress_bar.h"
#include "cli/verbs/numerics_join.h"
#include "common/text.h"
#include "report/doc/looks_doc.h"
#include "report/json_util.h"

#define VERB "summaries"
/* The daemon gives up before that. */
#define TIMEOUT_MS 10000
/* More than a node has ranks. */
#define MAX_PAGES 1024u
/* Who is asked too often says so; a second later it answers. */
#define TRIES 3
#define SILENT_BYTES 256
#define NODE_BYTES 128

/* One page of a node's. A new reference; NULL with err set. */
static json_t *ask_page(const struct numerics_nodes *nodes, const json_t *job, uint32_t first,
			struct cw_err *err)
{
	json_t *args = json_pack("{s:O, s:O, s:O, s:I}", "node", json_object_get(job, "node"),
				 "job", json_object_get(job, "job"), "uid",
				 json_object_get(job, "uid"), "first", (json_int_t)first);
	json_t *doc = NULL;
	uint32_t code;
	int r = args ? -EREMOTEIO : cw_err_set(err, ENOMEM, "out of memory");

	for (int i = 0; i < TRIES && (r == -EREMOTEIO || r == -ENODATA); i++)
		r = cw_control_ask(nodes->control, VERB, args, TIMEOUT_MS, &doc, &code, err);
	json_decref(args);
	return r < 0 ? NULL : doc;
}

/* A node that does not answer, or not as it should, is named: the others are no worse for that. */
static int add_node(const struct numerics_nodes *nodes, const json_t *job,
		    struct cw_numerics_input *in, char *silent)
{
	char node[NODE_BYTES];
	struct cw_err err = { "" };
	uint32_t first = 0, left_out = 1;
	int r = 0;

	(void)snprintf(node, sizeof(node), "%s", cw_json_str(job, "node", "?"));
	cw_text_sanitise_line(node);
	for (unsigned page = 0; page < MAX_PAGES && left_out && r == 0; page++) {
		json_t *doc = ask_page(nodes, job, first, &err);
		uint32_t n = (uint32_t)json_array_size(json_object_get(doc, "ranks"));

		left_out = n ? cw_looks_doc_left_out(doc) : 0;
		first += n;
		r = doc ? numerics_join(in, doc, NULL, node, &err) : -ENODATA;
		json_decref(doc);
	}
	if (r < 0 && r != -ENOMEM) {
		cw_text_append(silent, SILENT_BYTES, "%s%s", *silent ? ", " : "", node);
		r = 0;
	}
	return r;
}

/* ---- which nodes ---- */

/* Whose job it is, where nobody has said so: -1 = several users have one. */
static int64_t whose(const json_t *jobs, int64_t other[static 2])
{
	const json_t *job;
	int64_t found = -1;
	size_t i;

	json_array_foreach (jobs, i, job) {
		int64_t uid = (int64_t)cw_json_int(job, "uid", -1);

		if (found >= 0 && uid != found) {
			other[0] = found;
			other[1] = uid;
			return -1;
		}
		found = uid;
	}
	return found;
}

static int add_all(const struct numerics_nodes *nodes, const json_t *doc, int64_t uid,
		   struct cw_numerics_input *in, char *silent)
{
	const json_t *jobs = json_object_get(doc, "jobs"), *job;
	const char *self = cw_json_str(doc, "node", "");
	bool has_own = in->job.n_ranks > 0;
	struct cw_progress_bar bar;
	size_t i;
	int r = 0;

	cw_progress_bar_begin(&bar, "nodes", json_array_size(jobs), nodes->is_quiet);
	json_array_foreach (jobs, i, job) {
		bool is_own = strcmp(cw_json_str(job, "node", ""), self) == 0;

		if (cw_json_int(job, "uid", -1) == uid && !(is_own && has_own))
			r = add_node(nodes, job, in, silent);
		if (r < 0)
			break;
		cw_progress_bar_at(&bar, i + 1, NULL);
	}
	cw_progress_bar_end(&bar);
	return r;
}

static void name_silent(const json_t *doc, char *silent)
{
	const json_t *names = json_object_get(doc, "silent"), *name;
	json_int_t n = cw_json_int(doc, "silent_count", 0);
	size_t i;

	json_array_foreach (names, i, name) {
		char text[NODE_BYTES];

		(void)snprintf(text, sizeof(text), "%s",
			       json_is_string(name) ? json_string_value(name) : "?");
		cw_text_sanitise_line(text);
		cw_text_append(silent, SILENT_BYTES, "%s%s", *silent ? ", " : "", text);
	}
	if (n > (json_int_t)json_array_size(names))
		cw_text_append(silent, SILENT_BYTES, " and others");
	n = cw_json_int(doc, "not_asked", 0);
	if (n > 0)
		cw_text_append(silent, SILENT_BYTES, "%s%lld node%s that had no turn",
			       *silent ? ", " : "", (long long)n, n == 1 ? "" : "s");
}

int numerics_nodes_add(const struct numerics_nodes *nodes, struct cw_numerics_input *in,
		       struct cw_err *err)
{
	json_t *args = json_pack("{s:s}", "job", nodes->job), *doc = NULL;
	int64_t uid = in->uid >= 0 ? in->uid : nodes->uid, others[2] = { -1, -1 };
	char silent[SILENT_BYTES] = "";
	struct cw_err unheard;
	uint32_t code;
	int r = args ? cw_control_ask(nodes->control, VERB, args, TIMEOUT_MS, &doc, &code, &unheard)
		     : -ENOMEM;

	json_decref(args);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* no daemon, or one of before: what is here is all */
	if (uid < 0)
		uid = whose(json_object_get(doc, "jobs"), others);
	if (uid < 0 && json_array_size(json_object_get(doc, "jobs")))
		r = cw_err_set(err, ENOTUNIQ,
			       "%s: users %lld and %lld have a job of that name: --uid says whose",
			       nodes->job, (long long)others[0], (long long)others[1]);
	if (r == 0)
		r = add_all(nodes, doc, uid, in, silent);
	if (r == 0)
		name_silent(doc, silent);
	json_decref(doc);
	if (r == 0 && *silent) {
		in->silent = cw_arena_strdup(&in->arena, silent);
		r = in->silent ? 0 : -ENOMEM;
	}
	in->is_living = true;
	return r;
}
