/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without an argument: the list. With a path: a bundle directory, no daemon needed. With an id: the
 * daemon is asked; where none answers, this node's default state directory is looked at.
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
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/verbs/render_status.h"
#include "common/cleanup.h"
#include "report/bundle.h"
#include "report/html/render_html.h"
#include "report/json_util.h"
#include "report/text.h"
#include "report/text/render_text.h"

#define TIMEOUT_MS 10000
#define INCIDENTS_DIR "/var/lib/collwatch/incidents"

enum { OPT_ALL_FRAMES = 256, OPT_HTML };

struct report_args {
	struct cw_ask_options ask;
	const char *what;   /* id, path, or NULL */
	const char *output; /* file of the page; NULL = standard output */
	bool all_frames, html;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct report_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
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
	case ARGP_KEY_ARG:
		if (args->what)
			argp_error(state, "one incident at a time");
		args->what = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->html && (!args->what || args->ask.json))
			argp_error(state, "--html shows one incident: give its id or directory");
		if (args->output && !args->html)
			argp_error(state, "--output is for --html");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options =
		(const struct argp_option[]){
			{ "all-frames", OPT_ALL_FRAMES, NULL, 0,
			  "Show interpreter and libc frames and all threads", 0 },
			{ "html", OPT_HTML, NULL, 0,
			  "Write one self-contained page with pictures of the hang", 0 },
			{ "output", 'o', "FILE", 0,
			  "Where the page goes (default: standard output)", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_ask_children,
	.args_doc = "[ID | DIRECTORY]",
	.doc = "List the incidents of all nodes that can be reached, or show one.\v"
	       "A bundle directory can be shown on any machine, with no daemon running.",
};

static int list(const struct report_args *args)
{
	json_t *incidents = NULL;
	struct cw_err err;
	uint32_t code;
	int r;

	r = cw_control_ask(cw_control_path(args->ask.control), "incidents", NULL, TIMEOUT_MS,
			   &incidents, &code, &err);
	if (r < 0)
		return cw_ask_fail(r, &err);
	if (args->ask.json)
		cw_ask_print(incidents);
	else
		cw_render_incidents(stdout, incidents, cw_text_wants_color(stdout));
	json_decref(incidents);
	return CW_EXIT_OK;
}

static bool is_path(const char *what)
{
	return strchr(what, '/') || strcmp(what, ".") == 0 || strcmp(what, "..") == 0;
}

/* What the daemon sends is the bundle without its directory. */
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
	if (json_is_object(json_object_get(reply, "epitaph")))
		ret->epitaph = json_incref(json_object_get(reply, "epitaph"));
	if (json_is_array(json_object_get(reply, "evidence")))
		ret->evidence = json_incref(json_object_get(reply, "evidence"));
	if (json_is_object(json_object_get(reply, "snapshot")))
		ret->snapshot = json_incref(json_object_get(reply, "snapshot"));
	if (json_is_object(json_object_get(reply, "stacks")))
		ret->stacks = json_incref(json_object_get(reply, "stacks"));
	json_decref(reply);
	return 0;
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

/* Not for everybody's eyes: it holds what the bundle holds. */
static FILE *open_output(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!out && fd >= 0)
		(void)close(fd);
	return out;
}

static int show_page(const struct report_args *args, const struct cw_bundle *bundle)
{
	FILE *out = args->output ? open_output(args->output) : stdout;
	int r;

	if (!out) {
		fprintf(stderr, "collwatch: cannot write %s: %s\n", args->output, strerror(errno));
		return CW_EXIT_ERROR;
	}
	r = cw_render_html(out, bundle);
	if (args->output && fclose(out) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		return CW_EXIT_OK;
	if (r == -EBADMSG)
		fprintf(stderr, "collwatch: %s: the incident lacks fields a report needs\n",
			args->what);
	else
		fprintf(stderr, "collwatch: cannot write the page: %s\n", strerror(-r));
	return CW_EXIT_ERROR;
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
	if (args->ask.json) {
		if (bundle.incident && bundle.epitaph) /* out of memory: without */
			(void)json_object_set(bundle.incident, "epitaph", bundle.epitaph);
		cw_ask_print(cw_bundle_head(&bundle));
		return CW_EXIT_OK;
	}
	if (args->html)
		return show_page(args, &bundle);
	if (cw_render_text(stdout, &bundle, &opts) < 0) {
		fprintf(stderr, "collwatch: %s: the incident lacks fields a report needs\n",
			args->what);
		return CW_EXIT_ERROR;
	}
	return CW_EXIT_OK;
}

int cw_verb_report(int argc, char **argv)
{
	struct report_args args = { 0 };

	(void)cw_options_parse(&argp, argc, argv, 0, &args);
	return args.what ? show(&args) : list(&args);
}
