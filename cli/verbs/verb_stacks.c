/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/control.h"
#include "cli/exit_status.h"
#include "cli/options.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"
#include "cli/verbs/process_stacks.h"
#include "common/parse.h"
#include "report/doc/doc_phrase.h"
#include "report/json_util.h"
#include "report/text.h"
#include "report/text/render_stack.h"
#include "report/text/render_stack_tree.h"
#include "report/text/stacks_folded.h"

/* The leader may take 32 s. If it does not answer, this node's daemon may take 30 s more. */
#define TIMEOUT_MS 70000
/* Columns of the output, so that it fits any terminal. */
#define WIDTH 80
/* Seconds between two requests of --watch. The daemon gives a user one answer per 2 s. */
#define WATCH_S 2

enum { OPT_ALL_FRAMES = 256, OPT_ALL_THREADS, OPT_FOLDED, OPT_NATIVE, OPT_PID, OPT_WATCH };

struct stacks_args {
	struct cw_ask_options ask;
	const char *what[2]; /* JOB, RANK */
	unsigned n_what;
	pid_t pid; /* process of --pid; 0 = the user named a job */
	bool all_frames, all_threads, native, folded, watch, no_pager;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct stacks_args *args = state->input;
	uint64_t number;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
		state->child_inputs[1] = &args->no_pager;
		return 0;
	case OPT_ALL_FRAMES:
		args->all_frames = true;
		return 0;
	case OPT_ALL_THREADS:
		args->all_threads = true;
		return 0;
	case OPT_FOLDED:
		args->folded = true;
		return 0;
	case OPT_NATIVE:
		args->native = true;
		return 0;
	case OPT_WATCH:
		args->watch = true;
		return 0;
	case OPT_PID:
		if (cw_parse_u64(arg, 1, INT32_MAX, &number) < 0)
			argp_error(state, "\"%s\" is not the number of a process", arg);
		args->pid = (pid_t)number;
		return 0;
	case ARGP_KEY_ARG:
		if (args->n_what == 2)
			argp_error(state, "unexpected argument \"%s\": give one job and one rank",
				   arg);
		args->what[args->n_what++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->pid && args->n_what)
			argp_error(state,
				   "unexpected argument \"%s\": --pid already names the process",
				   args->what[0]);
		if (args->pid && (args->all_threads || args->native || args->folded || args->watch))
			argp_error(state,
				   "--pid shows all Python threads once: omit other options");
		if (args->folded && args->ask.json)
			argp_error(state, "--folded and --json are two formats: choose one");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_stacks = {
	.options =
		(const struct argp_option[]){
			{ "all-frames", OPT_ALL_FRAMES, NULL, 0,
			  "Show interpreter and libc frames and all threads", 0 },
			{ "all-threads", OPT_ALL_THREADS, NULL, 0,
			  "Show all Python threads of each rank, and not only its main thread", 0 },
			{ "folded", OPT_FOLDED, NULL, 0,
			  "Print one line per stack with its count, for flame-graph tools", 0 },
			{ "native", OPT_NATIVE, NULL, 0,
			  "Show native stacks too; this stops each rank for up to 100 ms", 0 },
			{ "pid", OPT_PID, "PID", 0,
			  "Show the Python stacks of this process, without a daemon", 0 },
			{ "watch", OPT_WATCH, NULL, 0, "Repeat every two seconds until Ctrl-C", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_ask_paged_children,
	.args_doc = "[JOB | RANK | JOB RANK]",
	.doc = "Show where the ranks of a job are now, or one of them.\vWithout JOB, the only job "
	       "that you may see. A number is a rank, unless a job has it as its name. Exit "
	       "status: 0 done, 1 no answer, 3 no stack is visible.",
};

/*
 * Queries the daemon for the stacks. A number may be a rank or the id of a Slurm job, so we first
 * try it as a job.
 */
static int ask(const struct stacks_args *args, const char *job, const char *rank, json_t **ret,
	       uint32_t *ret_code, struct cw_err *err)
{
	json_t *request = json_object();
	uint64_t number;
	int r = 0;

	if (job)
		r = json_object_set_new(request, "job", json_string(job));
	if (r == 0 && rank && cw_parse_u64(rank, 0, INT32_MAX, &number) < 0) {
		json_decref(request);
		return cw_err_set(err, EINVAL, "\"%s\" is not the number of a rank", rank);
	}
	if (r == 0 && rank)
		r = json_object_set_new(request, "rank", json_integer((json_int_t)number));
	if (r == 0 && args->native)
		r = json_object_set_new(request, "native", json_true());
	if (r == 0 && (args->all_threads || args->all_frames))
		r = json_object_set_new(request, "all_threads", json_true());
	r = r == 0 ? cw_control_ask(cw_control_path(args->ask.control), "stacks", request,
				    TIMEOUT_MS, ret, ret_code, err)
		   : cw_err_set(err, ENOMEM, "out of memory");
	json_decref(request);
	return r;
}

static int ask_for(const struct stacks_args *args, json_t **ret, uint32_t *ret_code,
		   struct cw_err *err)
{
	const char *what = args->what[0];
	uint64_t number;
	int r;

	if (args->n_what == 2)
		return ask(args, what, args->what[1], ret, ret_code, err);
	r = ask(args, what, NULL, ret, ret_code, err);
	if (r == -ENODATA && what && cw_parse_u64(what, 0, INT32_MAX, &number) == 0)
		r = ask(args, NULL, what, ret, ret_code, err);
	return r;
}

static void show(const struct stacks_args *args, const json_t *doc)
{
	struct cw_text t = { .out = stdout, .color = cw_text_wants_color(stdout), .width = WIDTH };
	unsigned what = (args->all_frames ? CW_SHOW_ALL_FRAMES : 0) |
			(args->all_frames || args->all_threads ? CW_SHOW_ALL_THREADS : 0);
	const json_t *evidence = json_object_get(doc, "evidence"), *one;
	const char *note = cw_json_str(doc, "note", "");

	if (!args->watch)
		cw_pager_open(args->no_pager);
	fputs("job ", stdout);
	cw_text_put(&t, CW_TEXT_BOLD, cw_doc_job(doc, "?"));
	putchar('\n');
	if (*note) {
		cw_text_put(&t, CW_TEXT_YELLOW, "note: ");
		cw_text_wrap(&t, 6, 6, note);
	}
	/*
	 * We show the full stacks of a single rank, and a tree of common frames for several ranks.
	 */
	one = json_array_get(evidence, 0);
	if (cw_json_int(doc, "processes", 0) != 1 || !one) {
		cw_render_stack_tree(&t, doc, what);
		return;
	}
	fputs("rank ", stdout);
	cw_text_put(&t, CW_TEXT_BOLD, cw_json_str(doc, "ranks", "?"));
	fputs(" on ", stdout);
	cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(one, "host", "?"));
	printf(", pid %" JSON_INTEGER_FORMAT "\n", cw_json_int(one, "pid", 0));
	cw_render_evidence(&t, one, args->all_frames);
}

/* Returns the exit status for a process's stacks. */
static int show_process(const struct stacks_args *args, const json_t *doc)
{
	struct cw_text t = { .out = stdout, .color = cw_text_wants_color(stdout), .width = WIDTH };
	const json_t *python = json_object_get(doc, "python");
	const char *status = cw_json_str(python, "status", "");

	if (args->ask.json) {
		cw_print_json(doc);
	} else if (json_array_size(json_object_get(python, "threads")) == 0) {
		fprintf(stderr, "collwatch: process %d has no Python stack: ", (int)args->pid);
		cw_text_put(&(struct cw_text){ .out = stderr }, CW_TEXT_PLAIN,
			    cw_json_str(python, "reason", "?"));
		fputc('\n', stderr);
	} else {
		cw_pager_open(args->no_pager);
		printf("process %d:\n", (int)args->pid);
		cw_render_evidence(&t, doc, true);
	}
	if (json_array_size(json_object_get(python, "threads")) > 0)
		return 0;
	return strcmp(status, "absent") == 0 ? 3 : 1;
}

static int stacks_of_process(const struct stacks_args *args)
{
	json_t *doc;
	int r = cw_process_stacks_read(args->pid, &doc);

	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", strerror(-r));
		return 1;
	}
	r = show_process(args, doc);
	json_decref(doc);
	return r;
}

/* Asks once and prints the answer. Returns the exit status. */
static int ask_and_show(const struct stacks_args *args)
{
	json_t *doc = NULL;
	struct cw_err err;
	uint32_t code = 0;
	int r = ask_for(args, &doc, &code, &err);

	if (r < 0)
		return cw_ask_fail(r, &err);
	if (args->watch && isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout); /* clear the screen */
	if (args->ask.json)
		cw_print_json(doc);
	else if (args->folded)
		cw_render_stacks_folded(stdout, doc);
	else
		show(args, doc);
	json_decref(doc);
	return (int)code;
}

int cw_verb_stacks(int argc, char **argv)
{
	struct stacks_args args = { 0 };
	int r;

	(void)cw_options_parse(&cw_argp_stacks, argc, argv, 0, &args);
	if (args.pid)
		return stacks_of_process(&args);
	do {
		r = ask_and_show(&args);
		if (!args.watch || fflush(stdout) != 0 || ferror(stdout))
			break;
		(void)sleep(WATCH_S);
	} while (r != CW_EXIT_ERROR);
	return r;
}
