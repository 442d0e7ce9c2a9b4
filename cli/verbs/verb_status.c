/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/control.h"
#include "cli/options.h"
#include "cli/terminal/page_file.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"
#include "cli/verbs/render_ops.h"
#include "cli/verbs/render_status.h"
#include "report/html/html_ops.h"
#include "report/shared_comms.h"
#include "report/text.h"

#define TIMEOUT_MS 5000
#define WATCH_EVERY_S 2

enum { OPT_WATCH = 256, OPT_OPS, OPT_HTML };

struct status_args {
	struct cw_ask_options ask;
	const char *output; /* file of the page; NULL = standard output */
	bool watch, ops, html, no_pager;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct status_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
		state->child_inputs[1] = &args->no_pager;
		return 0;
	case OPT_OPS:
		args->ops = true;
		return 0;
	case OPT_WATCH:
		args->watch = true;
		return 0;
	case OPT_HTML:
		args->html = true;
		return 0;
	case 'o':
		args->output = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->html && (!args->ops || args->ask.json))
			argp_error(state, "--html needs --ops, and cannot be combined with --json");
		if (args->output && !args->html)
			argp_error(state, "--output needs --html");
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state,
			   "unexpected argument \"%s\": all jobs are shown; `collwatch stacks "
			   "JOB` looks at one",
			   arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_status = {
	.options =
		(const struct argp_option[]){
			{ "ops", OPT_OPS, NULL, 0,
			  "Show sums and times of the calls of this node's ranks instead", 0 },
			{ "html", OPT_HTML, NULL, 0,
			  "With --ops: write an HTML page, with charts and late ranks", 0 },
			{ "output", 'o', "FILE", 0, "File for the page (default: standard output)",
			  0 },
			{ "watch", OPT_WATCH, NULL, 0,
			  "Update the output every two seconds, as much as fits the terminal", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_ask_paged_children,
	.doc = "Show the jobs with ranks on this node. The leader of each job answers for it.\v"
	       "Exit status: 0 healthy, 1 usage or no answer, 2 a job hangs, 3 a job is not watched "
	       "or its leader did not answer.",
};

/* Returns the size of the terminal. A file has no limit (0 rows). */
static struct winsize terminal_size(bool is_terminal)
{
	struct winsize size = { 0 };

	if (!is_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		size.ws_row = 0;
	else if (size.ws_row > 1)
		size.ws_row--; /* a line break in the last row would scroll */
	if (size.ws_col < 40)
		size.ws_col = 100;
	return size;
}

/* Redraws the screen in one write to avoid flicker. Runs until Ctrl-C. */
static int watch(const struct status_args *args)
{
	bool is_terminal = isatty(STDOUT_FILENO);

	for (;;) {
		struct winsize size = terminal_size(is_terminal);
		json_t *status = NULL;
		struct cw_err err;
		uint32_t code;
		int r = cw_control_ask_status(cw_control_path(args->ask.control), &status, &code,
					      &err);

		if (is_terminal)
			fputs("\033[H\033[J", stdout);
		if (r < 0)
			printf("%s\n", err.text); /* we go on, because the daemon may come back */
		else
			cw_render_status_lines(stdout, status, cw_text_wants_color(stdout),
					       size.ws_row, size.ws_col);
		json_decref(status);
		/*
		 * A terminal's stream is line-buffered, so a write before fflush() may have failed.
		 * ferror() shows it.
		 */
		if (fflush(stdout) != 0 || ferror(stdout))
			return CW_EXIT_ERROR;
		(void)sleep(WATCH_EVERY_S);
	}
}

static void show(const struct status_args *args, const json_t *status)
{
	bool has_color = cw_text_wants_color(stdout);

	cw_pager_open(args->no_pager);
	if (args->ops)
		cw_render_ops(stdout, status, has_color);
	else
		cw_render_status(stdout, status, has_color);
}

/* Writes the page. It lists late ranks if we can get the status, too. */
static int show_page(const struct status_args *args, const json_t *ops)
{
	FILE *out = cw_page_file_open(args->output);
	json_t *status = NULL;
	struct cw_err err;
	uint32_t code;
	int r;

	if (!out)
		return CW_EXIT_ERROR;
	if (cw_control_ask_status(cw_control_path(args->ask.control), &status, &code, &err) < 0)
		fprintf(stderr, "collwatch: the late ranks are not known: %s\n", err.text);
	r = cw_page_file_close(out, cw_render_ops_page(out, ops, status));
	json_decref(status);
	if (r == 0)
		return CW_EXIT_OK;
	fprintf(stderr, "collwatch: cannot write the page: %s\n", strerror(-r));
	return CW_EXIT_ERROR;
}

/* Adds the shared communicators of all nodes. If the daemon does not answer, adds nothing. */
static void add_shared_comms(const struct status_args *args, json_t *status)
{
	json_t *doc = NULL;
	struct cw_err err;
	uint32_t code;

	if (cw_control_ask(cw_control_path(args->ask.control), "communicators", NULL, TIMEOUT_MS,
			   &doc, &code, &err) < 0)
		return;
	(void)json_object_set_new(status, "shared_communicators", cw_shared_comms_find(doc));
	json_decref(doc);
}

int cw_verb_status(int argc, char **argv)
{
	struct status_args args = { 0 };
	json_t *status = NULL;
	struct cw_err err;
	uint32_t code;
	int r;

	(void)cw_options_parse(&cw_argp_status, argc, argv, 0, &args);
	if (args.watch && !args.ops)
		return watch(&args);
	r = args.ops ? cw_control_ask(cw_control_path(args.ask.control), "ops", NULL, TIMEOUT_MS,
				      &status, &code, &err)
		     : cw_control_ask_status(cw_control_path(args.ask.control), &status, &code,
					     &err);
	if (r < 0)
		return cw_ask_fail(r, &err);
	if (!args.ops && cw_shared_comms_may_be(status))
		add_shared_comms(&args, status);
	if (args.ask.json)
		cw_print_json(status);
	else if (args.html)
		code = (uint32_t)show_page(&args, status);
	else
		show(&args, status);
	r = args.ops || code ? (int)code : cw_render_status_exit(status);
	json_decref(status);
	return r;
}
