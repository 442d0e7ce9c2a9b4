/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without an argument, `report` shows the list of incidents. With a path, it shows that bundle
 * directory, without a daemon. With an id, it gets the bundle from the daemon. If no daemon
 * answers, it reads this node's default state directory.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/control.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "cli/terminal/page_file.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"
#include "cli/verbs/render_status.h"
#include "cli/verbs/since.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "model/verdict_types.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "report/anonymise/anonymise.h"
#include "report/bundle.h"
#include "report/doc/incident_facts.h"
#include "report/html/render_html.h"
#include "report/incident_filter.h"
#include "report/json_util.h"
#include "report/text.h"
#include "report/text/render_text.h"

#define TIMEOUT_MS 10000
#define INCIDENTS_DIR "/var/lib/collwatch/incidents"

enum {
	OPT_ALL_FRAMES = 256,
	OPT_HTML,
	OPT_ANONYMISE,
	OPT_COPY,
	OPT_SINCE,
	OPT_CLASS,
	OPT_NODE,
	OPT_JOB
};

struct report_args {
	struct cw_ask_options ask;
	const char *what;   /* id, path, or NULL */
	const char *output; /* file of the page; NULL = standard output */
	const char *copy;   /* directory of the bundle's copy; NULL = none */
	bool all_frames, html, anonymise, no_pager;
	struct cw_incident_filter filter;
};

static bool is_filtered(const struct cw_incident_filter *f)
{
	return f->since_wall_ns || f->class || f->node || f->job;
}

static void read_since(struct report_args *args, const char *arg, struct argp_state *state)
{
	int r = cw_since_parse(arg, cw_clock_wall_ns(&cw_clock_system),
			       &args->filter.since_wall_ns);

	if (r == -ERANGE)
		argp_error(state, "--since: \"%s\" is not in the past", arg);
	else if (r < 0)
		argp_error(state,
			   "--since: \"%s\" is not a time like 2h, yesterday, 14:30, 2026-11-23 or "
			   "\"2026-11-23 14:30\"",
			   arg);
}

/*
 * Reads the name of a class. The list of incidents has blanks in it, and documents have
 * underscores; we accept both.
 */
static void read_class(struct report_args *args, const char *arg, struct argp_state *state)
{
	struct cw_nearest nearest = { .typed = arg };
	char typed[64], all[256] = "";
	size_t used = 0;

	(void)snprintf(typed, sizeof(typed), "%s", arg);
	for (char *p = typed; *p; p++)
		if (*p == ' ' || *p == '-')
			*p = '_';
	for (unsigned i = CW_CLASS_HEALTHY + 1; i < CW_CLASS__MAX; i++) {
		const char *name = cw_class_name(i);

		if (strcmp(name, typed) == 0)
			args->filter.class = name;
		cw_nearest_offer(&nearest, name);
		if (used < sizeof(all))
			used += (size_t)snprintf(all + used, sizeof(all) - used, " %s", name);
	}
	if (args->filter.class && strcmp(args->filter.class, typed) == 0)
		return;
	if (nearest.word)
		argp_error(state, "--class: there is no class \"%s\"; did you mean \"%s\"?", arg,
			   nearest.word);
	else
		argp_error(state, "--class: there is no class \"%s\"; there are:%s", arg, all);
}

const char *cw_report_value(const char *name, unsigned i)
{
	i += CW_CLASS_HEALTHY + 1;
	return strcmp(name, "CLASS") == 0 && i < CW_CLASS__MAX ? cw_class_name(i) : NULL;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct report_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
		state->child_inputs[1] = &args->no_pager;
		return 0;
	case OPT_ALL_FRAMES:
		args->all_frames = true;
		return 0;
	case OPT_HTML:
		args->html = true;
		return 0;
	case 'o':
		args->output = arg;
		return 0;
	case OPT_ANONYMISE:
		args->anonymise = true;
		return 0;
	case OPT_COPY:
		args->copy = arg;
		return 0;
	case OPT_SINCE:
		read_since(args, arg, state);
		return 0;
	case OPT_CLASS:
		read_class(args, arg, state);
		return 0;
	case OPT_NODE:
		args->filter.node = arg;
		return 0;
	case OPT_JOB:
		args->filter.job = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (args->what)
			argp_error(state, "give one incident only");
		args->what = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->html && (!args->what || args->ask.json))
			argp_error(state, "--html shows one incident: give its id or directory");
		if (args->copy && (!args->what || args->ask.json || args->html))
			argp_error(state, "--copy copies one incident: give its id, and no option "
					  "of a report");
		if (args->output && !args->html)
			argp_error(state, "--output needs --html");
		if (args->what && is_filtered(&args->filter))
			argp_error(state, "--since, --class, --node and --job select from the "
					  "list: give no incident");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_report = {
	.options =
		(const struct argp_option[]){
			{ "all-frames", OPT_ALL_FRAMES, NULL, 0,
			  "Show interpreter and libc frames and all threads", 0 },
			{ "html", OPT_HTML, NULL, 0,
			  "Write one self-contained page with pictures of the hang", 0 },
			{ "output", 'o', "FILE", 0, "File for the page (default: standard output)",
			  0 },
			{ "anonymise", OPT_ANONYMISE, NULL, 0,
			  "Replace the names of hosts, users, jobs, files, … so that you can share "
			  "it",
			  0 },
			{ "anonymize", 0, NULL, OPTION_ALIAS, NULL, 0 },
			{ "copy", OPT_COPY, "DIRECTORY", 0,
			  "Copy the incident's bundle into a new directory instead", 0 },
			{ NULL, 0, NULL, 0, "List only these incidents:", 2 },
			{ "since", OPT_SINCE, "TIME", 0,
			  "From this time on: 2h (ago), yesterday, 14:30, 2026-11-23", 0 },
			{ "class", OPT_CLASS, "CLASS", 0,
			  "Of this class, for example never_entered", 0 },
			{ "node", OPT_NODE, "NODE", 0, "With a culprit on this node", 0 },
			{ "job", OPT_JOB, "JOB", 0, "Of this job, by its name in status", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_ask_paged_children,
	.args_doc = "[ID | DIRECTORY]",
	.doc = "List the incidents of all reachable nodes, or show one.\vA bundle directory can be "
	       "shown on any machine, without a daemon.",
};

static int out_of_memory(void)
{
	fputs("collwatch: out of memory\n", stderr);
	return CW_EXIT_ERROR;
}

static void show_list(const struct report_args *args, const json_t *incidents)
{
	bool has_color = cw_text_wants_color(stdout);

	cw_pager_open(args->no_pager);
	if (is_filtered(&args->filter) && !json_array_size(json_object_get(incidents, "incidents")))
		fputs("of the selected ones: ", stdout);
	cw_render_incidents(stdout, incidents, has_color);
}

static int list(const struct report_args *args)
{
	json_t *incidents = NULL, *request = cw_incident_filter_write(&args->filter);
	struct cw_err err;
	uint32_t code;
	int r;

	r = cw_control_ask(cw_control_path(args->ask.control), "incidents", request, TIMEOUT_MS,
			   &incidents, &code, &err);
	json_decref(request);
	if (r < 0)
		return cw_ask_fail(r, &err);
	if (args->anonymise && cw_anonymise(&incidents, 1) < 0) {
		json_decref(incidents);
		return out_of_memory();
	}
	if (args->ask.json)
		cw_print_json(incidents);
	else
		show_list(args, incidents);
	json_decref(incidents);
	return CW_EXIT_OK;
}

static bool is_path(const char *what)
{
	return strchr(what, '/') || strcmp(what, ".") == 0 || strcmp(what, "..") == 0;
}

/*
 * Moves the summaries of other nodes from the reply to *ret. If the reply omits them, takes their
 * number.
 */
static int take_remote_summaries(const json_t *reply, struct cw_bundle *ret)
{
	json_t *docs = json_object_get(reply, "remote_summaries"), *doc;
	json_int_t omitted = cw_json_int(reply, "summaries_omitted", 0);
	size_t i;
	int bad = 0;

	ret->n_remote_summaries_omitted = omitted > 0 ? (unsigned)omitted : 0;
	if (json_array_size(docs))
		ret->remote_summaries = json_array();
	json_array_foreach (docs, i, doc)
		if (json_is_object(doc))
			bad |= json_array_append_new(ret->remote_summaries, json_incref(doc));
	return bad ? -ENOMEM : 0;
}

/* Gets a bundle from the daemon. The answer is the bundle without its directory. */
static int ask_for_bundle(const struct report_args *args, struct cw_bundle *ret, struct cw_err *err)
{
	json_t *request = json_pack("{s:s}", "id", args->what), *reply = NULL;
	uint32_t code;
	int r;

	r = cw_control_ask(cw_control_path(args->ask.control), "report", request, TIMEOUT_MS,
			   &reply, &code, err);
	json_decref(request);
	if (r < 0)
		return r;
	if (json_is_object(json_object_get(reply, "incident")))
		ret->incident = json_incref(json_object_get(reply, "incident"));
	if (json_is_array(json_object_get(reply, "evidence")))
		ret->evidence = json_incref(json_object_get(reply, "evidence"));
	if (json_is_object(json_object_get(reply, "snapshot")))
		ret->snapshot = json_incref(json_object_get(reply, "snapshot"));
	if (json_is_object(json_object_get(reply, "stacks")))
		ret->stacks = json_incref(json_object_get(reply, "stacks"));
	if (json_is_object(json_object_get(reply, "ops")))
		ret->ops = json_incref(json_object_get(reply, "ops"));
	if (json_is_object(json_object_get(reply, "summaries")))
		ret->summaries = json_incref(json_object_get(reply, "summaries"));
	r = take_remote_summaries(reply, ret);
	json_decref(reply);
	return r < 0 ? cw_err_set(err, -r, "out of memory") : 0;
}

static int find_bundle(const struct report_args *args, struct cw_bundle *ret, struct cw_err *err)
{
	char path[PATH_MAX];
	int r;

	if (is_path(args->what))
		return cw_bundle_read(args->what, ret, err);
	r = ask_for_bundle(args, ret, err);
	if (r != -ECONNREFUSED && r != -ENOENT)
		return r;
	snprintf(path, sizeof(path), INCIDENTS_DIR "/%s", args->what);
	return cw_bundle_read(path, ret, NULL) == 0 ? 0 : r; /* err: why the daemon did not help */
}

static int show_page(const struct report_args *args, const struct cw_bundle *bundle)
{
	FILE *out = cw_page_file_open(args->output);
	int r;

	if (!out)
		return CW_EXIT_ERROR;
	r = cw_page_file_close(out, cw_render_html(out, bundle));
	if (r == 0)
		return CW_EXIT_OK;
	if (r == -EBADMSG)
		fprintf(stderr, "collwatch: %s: the incident lacks fields that a report needs\n",
			args->what);
	else
		fprintf(stderr, "collwatch: cannot write the page: %s\n", strerror(-r));
	return CW_EXIT_ERROR;
}

/*
 * If the daemon omitted summaries of other nodes from this copy, adds a document that says so.
 */
static int note_omitted(struct cw_bundle *bundle)
{
	const struct cw_tensor_samples_head head = { .node = "",
						     .taken_wall_ns =
							     cw_clock_wall_ns(&cw_clock_system) };

	if (!bundle->n_remote_summaries_omitted)
		return 0;
	if (!bundle->remote_summaries)
		bundle->remote_summaries = json_array();
	return json_array_append_new(
		bundle->remote_summaries,
		cw_tensor_samples_doc_of_none(&head, NULL, 0, CW_TENSOR_SAMPLES_DOC_TOO_MUCH));
}

/*
 * Writes the copy of a bundle. Never writes into an existing directory, because files of an older
 * bundle would remain in it.
 */
static int write_copy(const struct report_args *args, struct cw_bundle *bundle)
{
	_cleanup_(freep) char *path = strdup(args->copy), *command = NULL;
	_cleanup_(closep) int fd = -1;
	struct cw_err err;
	char *name;

	if (!path || note_omitted(bundle) < 0)
		return out_of_memory();
	for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	if (access(path, F_OK) == 0) {
		fprintf(stderr, "collwatch: %s exists already\n", path);
		return CW_EXIT_ERROR;
	}
	name = strrchr(path, '/');
	if (name)
		*name++ = '\0';
	fd = open(!name ? "." : *path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "collwatch: cannot open %s: %s\n", path, strerror(errno));
		return CW_EXIT_ERROR;
	}
	if (cw_bundle_write(fd, name ? name : path, bundle, &err) < 0) {
		fprintf(stderr, "collwatch: cannot copy to %s: %s\n", args->copy, err.text);
		return CW_EXIT_ERROR;
	}
	command = cw_text_command("collwatch report", args->copy);
	if (command)
		printf("%s is a copy; to see it: %s\n", args->copy, command);
	if (bundle->n_remote_summaries_omitted)
		fprintf(stderr, "collwatch: the copy omits tensor summaries of other nodes, "
				"because they are too large; to get them, copy the bundle's "
				"directory on the node that has it\n");
	return CW_EXIT_OK;
}

/*
 * Refuses an incident with a value of a wrong kind, and warns of keys that only a newer version
 * knows.
 */
static int check_incident(const struct report_args *args, const json_t *incident)
{
	struct cw_incident_newer newer;
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };
	struct cw_err err;
	int r = cw_incident_facts_read(incident, &arena, &facts, &newer, &err);

	cw_arena_fini(&arena);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s: incident.json: %s\n", args->what, err.text);
		return CW_EXIT_ERROR;
	}
	if (newer.n)
		fprintf(stderr,
			"collwatch: %s: incident.json is of a newer version, which has \"%s\"%s\n",
			args->what, newer.first, newer.n > 1 ? " and other fields" : "");
	return CW_EXIT_OK;
}

static int show(const struct report_args *args)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	struct cw_render_opts opts = {
		.color = cw_text_wants_color(stdout),
		.all_frames = args->all_frames,
	};
	struct cw_err err = { "" };
	int r = find_bundle(args, &bundle, &err);

	if (r < 0)
		return cw_ask_fail(r, &err);
	if (bundle.incident && check_incident(args, bundle.incident) != CW_EXIT_OK)
		return CW_EXIT_ERROR;
	if (args->anonymise && cw_anonymise_bundle(&bundle) < 0)
		return out_of_memory();
	if (args->copy)
		return write_copy(args, &bundle);
	if (args->ask.json) {
		cw_print_json(bundle.incident);
		return CW_EXIT_OK;
	}
	if (args->html)
		return show_page(args, &bundle);
	cw_pager_open(args->no_pager);
	if (cw_render_text(stdout, &bundle, &opts) < 0) {
		fprintf(stderr, "collwatch: %s: the incident lacks fields that a report needs\n",
			args->what);
		return CW_EXIT_ERROR;
	}
	return CW_EXIT_OK;
}

int cw_verb_report(int argc, char **argv)
{
	struct report_args args = { 0 };

	(void)cw_options_parse(&cw_argp_report, argc, argv, 0, &args);
	return args.what ? show(&args) : list(&args);
}
