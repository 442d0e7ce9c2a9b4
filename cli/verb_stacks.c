/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/control.h"
#include "cli/verb.h"
#include "common/parse.h"
#include "report/json_util.h"
#include "report/render_stack.h"
#include "report/render_stack_tree.h"
#include "report/text.h"

/* The daemon answers within 30 s, with what there is by then. */
#define TIMEOUT_MS 40000
#define WIDTH 100

enum { OPT_JSON = 256, OPT_CONTROL, OPT_ALL_FRAMES };

struct stacks_args {
	const char *control;
	const char *what[2]; /* JOB, RANK */
	unsigned n_what;
	bool json, all_frames;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct stacks_args *args = state->input;

	switch (key) {
	case OPT_JSON:
		args->json = true;
		return 0;
	case OPT_ALL_FRAMES:
		args->all_frames = true;
		return 0;
	case OPT_CONTROL:
		args->control = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (args->n_what == 2)
			argp_error(state, "one job, one rank");
		args->what[args->n_what++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options =
		(const struct argp_option[]){
			{ "json", OPT_JSON, NULL, 0, "Print the daemon's document as it is", 0 },
			{ "all-frames", OPT_ALL_FRAMES, NULL, 0,
			  "Show interpreter and libc frames and all threads", 0 },
			{ "control", OPT_CONTROL, "SOCKET", 0,
			  "Control socket (default: " CW_CONTROL_SOCKET ")", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.args_doc = "[JOB | RANK | JOB RANK]",
	.doc = "Show where the ranks of a job are, or one of them, right now.\v"
	       "Without JOB, the only job that you may see. A name of digits is a rank where there "
	       "is no "
	       "such job. Exit status: 0 done, 1 no answer, 3 nothing could be seen.",
};

/* Digits alone may name a job (Slurm) as well: the daemon is asked for that first. */
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
	r = r == 0 ? cw_control_ask(cw_control_path(args->control), "stacks", request, TIMEOUT_MS,
				    ret, ret_code, err)
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

static void show(const json_t *doc, bool all_frames)
{
	struct cw_text t = { .out = stdout, .color = isatty(STDOUT_FILENO), .width = WIDTH };
	const json_t *evidence = json_object_get(doc, "evidence"), *one;
	const char *note = cw_json_str(doc, "note", "");

	fputs("job ", stdout);
	cw_text_put(&t, CW_TEXT_BOLD, cw_json_str(doc, "job", "?"));
	putchar('\n');
	if (*note) {
		cw_text_put(&t, CW_TEXT_YELLOW, "note: ");
		cw_text_wrap(&t, 6, 6, note);
	}
	/* One rank is shown as it is; of many, what they have in common. */
	one = json_array_get(evidence, 0);
	if (cw_json_int(doc, "processes", 0) != 1 || !one) {
		cw_render_stack_tree(&t, doc, all_frames);
		return;
	}
	fputs("rank ", stdout);
	cw_text_put(&t, CW_TEXT_BOLD, cw_json_str(doc, "ranks", "?"));
	fputs(" on ", stdout);
	cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(one, "host", "?"));
	printf(", pid %" JSON_INTEGER_FORMAT "\n", cw_json_int(one, "pid", 0));
	cw_render_evidence(&t, one, all_frames);
}

int cw_verb_stacks(int argc, char **argv)
{
	struct stacks_args args = { 0 };
	json_t *doc = NULL;
	struct cw_err err;
	uint32_t code = 0;
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	r = ask_for(&args, &doc, &code, &err);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return r == -ENODATA ? CW_EXIT_NO_DATA : CW_EXIT_ERROR;
	}
	if (args.json) {
		json_dumpf(doc, stdout, JSON_INDENT(1));
		putchar('\n');
	} else {
		show(doc, args.all_frames);
	}
	json_decref(doc);
	return (int)code;
}
