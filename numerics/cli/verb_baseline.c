/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baseline`: records statistics of a run's tensors, op by op, and compares another run with them
 * (docs/numerics.md#baseline-and-check). The program owns standard output; our messages during the
 * run go to standard error.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/options.h"
#include "cli/terminal/page_file.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "numerics/cli/baseline_dir.h"
#include "numerics/cli/baseline_doc.h"
#include "numerics/cli/baseline_job.h"
#include "numerics/cli/baseline_making.h"
#include "numerics/cli/baseline_text.h"
#include "report/html/html_baseline.h"

#define RANKS_SHOWN 8u

enum {
	OPT_JSON = 256,
	OPT_AGENT,
	OPT_SUMMARY,
	OPT_RTOL,
	OPT_ATOL,
	OPT_ONLY,
	OPT_SKIP,
	OPT_KEEP,
	OPT_HTML,
	OPT_COMPLETE
};

struct args {
	const char *verb, *dir, *output, *keep;
	struct baseline_making making;
	double rtol, atol; /* NAN = use the default */
	bool json, html;
	struct baseline_request request;
};

static void take_word(struct args *args, char *word, struct argp_state *state)
{
	if (state->quoted && state->next > state->quoted) {
		args->making.program = &state->argv[state->next - 1];
		state->next = state->argc;
	} else if (!args->verb) {
		args->verb = word;
	} else if (strcmp(args->verb, "check") == 0 && !args->dir) {
		args->dir = word;
	} else {
		args->making.paths[args->making.n_paths++] = word;
	}
}

static double tolerance(const char *arg, struct argp_state *state)
{
	char *rest;
	double v = strtod(arg, &rest);

	if (rest == arg || *rest || !isfinite(v) || v < 0)
		argp_error(state, "%s: a tolerance must be a number of 0 or more", arg);
	return v;
}

static void check_all(const struct args *args, struct argp_state *state)
{
	bool records = args->verb && strcmp(args->verb, "record") == 0;

	if (!records && (!args->verb || strcmp(args->verb, "check") != 0))
		argp_error(state, "give record -o DIRECTORY …, or check DIRECTORY …");
	if (records && !args->output)
		argp_error(state, "record: no directory given for the baseline: add -o DIRECTORY");
	if (!records && !args->dir)
		argp_error(state, "check: no baseline given");
	if (!args->making.program == !args->making.n_paths)
		argp_error(state, "give either flight records%s, or \"--\" and a program",
			   records ? "" : " or another baseline");
	if (records && (args->json || args->html || args->request.n_filters || !isnan(args->rtol) ||
			!isnan(args->atol) || args->keep))
		argp_error(state,
			   "--json, --html, --rtol, --atol, --only, --skip and --keep need check");
	if (!records && args->output && !args->html)
		argp_error(
			state,
			"-o needs record or --html; to keep the recording of a check, use --keep");
	if (args->json && args->html)
		argp_error(state, "give either --json or --html");
	if (!args->making.program &&
	    (args->making.agent || args->making.summary || args->making.complete))
		argp_error(state, "--agent, --summary and --complete need a program");
	if (args->making.summary && strcmp(args->making.summary, "full") != 0 &&
	    strcmp(args->making.summary, "sampled") != 0)
		argp_error(state, "--summary: full or sampled");
	if (args->making.complete && args->making.summary &&
	    strcmp(args->making.summary, "full") != 0)
		argp_error(state, "--complete needs --summary full");
}

static void add_filter(struct args *args, const char *arg, bool skips, struct argp_state *state)
{
	int r = baseline_request_filter(&args->request, arg, skips);

	if (r == -E2BIG)
		argp_error(state, "--only, --skip: more than %u", BASELINE_FILTERS);
	if (r < 0)
		argp_error(state, "%s: give kind=PATTERN, comm=PATTERN or site=PATTERN", arg);
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct args *args = state->input;

	switch (key) {
	case 'o':
		args->output = arg;
		return 0;
	case OPT_JSON:
		args->json = true;
		return 0;
	case OPT_HTML:
		args->html = true;
		return 0;
	case OPT_AGENT:
		args->making.agent = arg;
		return 0;
	case OPT_SUMMARY:
		args->making.summary = arg;
		return 0;
	case OPT_COMPLETE:
		args->making.complete = true;
		return 0;
	case OPT_KEEP:
		args->keep = arg;
		return 0;
	case OPT_RTOL:
		args->rtol = tolerance(arg, state);
		return 0;
	case OPT_ATOL:
		args->atol = tolerance(arg, state);
		return 0;
	case OPT_ONLY:
	case OPT_SKIP:
		add_filter(args, arg, key == OPT_SKIP, state);
		return 0;
	case ARGP_KEY_ARG:
		take_word(args, arg, state);
		return 0;
	case ARGP_KEY_END:
		check_all(args, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_baseline = {
	.options =
		(const struct argp_option[]){
			{ "output", 'o', "PATH", 0,
			  "record: directory for the baseline; check --html: file for the page",
			  0 },
			{ "agent", OPT_AGENT, "FILE", 0,
			  "The agent (default: the one of this installation)", 0 },
			{ "summary", OPT_SUMMARY, "POLICY", 0,
			  "full (default) or sampled; of sampled tensors, only those that were "
			  "examined completely are compared",
			  0 },
			{ "complete", OPT_COMPLETE, NULL, 0,
			  "Ranks wait until their tensor summaries have been read, instead of "
			  "overwriting them",
			  0 },
			{ "rtol", OPT_RTOL, "X", 0,
			  "Relative tolerance of elements, for all types (default: each type's)",
			  0 },
			{ "atol", OPT_ATOL, "X", 0,
			  "Absolute tolerance of elements, for all types (default: 0)", 0 },
			{ "only", OPT_ONLY, "KEY=PATTERN", 0,
			  "Compare only ops of this kind, comm or site; may be repeated", 0 },
			{ "skip", OPT_SKIP, "KEY=PATTERN", 0,
			  "Exclude ops of this kind, comm or site; may be repeated", 0 },
			{ "keep", OPT_KEEP, "DIRECTORY", 0,
			  "check: directory in which to keep the recording of the program or "
			  "records",
			  0 },
			{ "json", OPT_JSON, NULL, 0, "check: print JSON", 0 },
			{ "html", OPT_HTML, NULL, 0, "check: write an HTML page", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.args_doc = "record -o DIRECTORY -- PROGRAM [ARGUMENT…]\n"
		    "record -o DIRECTORY RECORD…\n"
		    "check DIRECTORY -- PROGRAM [ARGUMENT…]\n"
		    "check DIRECTORY RECORD…\n"
		    "check DIRECTORY DIRECTORY",
	.doc = "Record the inputs and outputs of each collective of a run, and compare another run "
	       "with them. A RECORD is a flight record, or a file of collwatch.torch with a rank's "
	       "calls of operators.\vExit status of check: 0 equal, 1 usage or I/O error, 2 "
	       "different, 3 cannot be compared; of record: 0 done, 1 usage or I/O error, 2 the "
	       "program failed, 3 no tensor was examined.",
};

/* ---- recording ---- */

static int record(const struct args *args)
{
	struct cw_err err = { "" };
	int program, status;

	if (baseline_making_dir(args->output, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return BASELINE_EXIT_USAGE;
	}
	status = baseline_making_run(&args->making, args->output, &program);
	return status != BASELINE_EXIT_EQUAL ? status
	       : program                     ? BASELINE_EXIT_DIFFERS
					     : BASELINE_EXIT_EQUAL;
}

/* ---- checking ---- */

static void show_denied(const struct baseline_job *job)
{
	const char *a = baseline_text_denied(job, false), *b = baseline_text_denied(job, true);

	if (*a)
		printf("operators not examined: %s\n", a);
	if (strcmp(a, b) != 0)
		printf("operators not examined in the check: %s\n", *b ? b : "none");
}

static void show_text(const struct baseline_job *job)
{
	static const char *const names[] = { "the baseline", "the check" };
	char text[BASELINE_TEXT_BYTES_MAX];
	uint32_t shown = 0;

	if (job->n_differ) {
		const struct baseline_rank *first = &job->parts[job->first];

		printf("%s\n", baseline_text_first(first, text, sizeof(text)));
		printf("  baseline  %s\n", baseline_text_op(&first->op_a, text, sizeof(text)));
		printf("  check     %s\n", baseline_text_op(&first->op_b, text, sizeof(text)));
	}
	if (job->n_differ > 1)
		printf("ranks that differ: %u; the others first in\n", job->n_differ);
	for (uint32_t i = 0; i < job->n_parts && shown < RANKS_SHOWN; i++) {
		const struct baseline_rank *r = &job->parts[i];

		if (i == job->first || r->said.first.what == CW_BASELINE_EQUAL)
			continue;
		printf("  %s\n", baseline_text_first(r, text, sizeof(text)));
		shown++;
	}
	if (job->n_differ > shown + 1)
		printf("  … and others: %u\n", job->n_differ - shown - 1);
	if (job->outcome == BASELINE_OUTCOME_EQUAL)
		printf("equal\n");
	if (job->why[0])
		printf("cannot be compared: %s\n", job->why);
	printf("%s\n", baseline_text_coverage(job, text, sizeof(text)));
	for (int side = 0; side < 2; side++)
		if (*baseline_text_lost(job, side, text, sizeof(text)))
			printf("%s lacks: %s\n", names[side], text);
	show_denied(job);
}

static int show_page(const struct args *args, const json_t *doc)
{
	FILE *out = cw_page_file_open(args->output);
	int r = out ? cw_page_file_close(out, cw_render_baseline_page(out, doc)) : 0;

	if (r < 0)
		fprintf(stderr, "collwatch: cannot write the page: %s\n", strerror(-r));
	return out ? r : -EIO; /* show() has printed the error */
}

/* Prints the result. Returns 0, or -errno after printing the error. */
static int show(const struct args *args, const struct baseline_job *job)
{
	json_t *doc;
	int r = 0;

	if (!args->json && !args->html) {
		show_text(job);
		return 0;
	}
	doc = cw_or_exit(baseline_doc(job, &args->request));
	if (args->html)
		r = show_page(args, doc);
	else
		cw_print_json(doc);
	json_decref(doc);
	return r;
}

static int compare(const struct args *args, const char *dir, int program)
{
	static const int statuses[] = { [BASELINE_OUTCOME_EQUAL] = BASELINE_EXIT_EQUAL,
					[BASELINE_OUTCOME_DIFFERS] = BASELINE_EXIT_DIFFERS,
					[BASELINE_OUTCOME_NONE] = BASELINE_EXIT_INCOMPARABLE };
	_cleanup_(baseline_job_fini) struct baseline_job job = { .parts = NULL };
	struct cw_err err = { "" };

	if (baseline_job_compare(args->dir, dir, &args->request, &job, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return BASELINE_EXIT_USAGE;
	}
	/* The program failed, so the run is incomplete. The rest might have differed. */
	if (program && job.outcome == BASELINE_OUTCOME_EQUAL) {
		job.outcome = BASELINE_OUTCOME_NONE;
		(void)snprintf(job.why, sizeof(job.why),
			       "all compared ops are equal, but the program failed");
	}
	if (show(args, &job) < 0)
		return BASELINE_EXIT_USAGE;
	return statuses[job.outcome];
}

static int check_made(const struct args *args)
{
	const char *tmp = getenv("TMPDIR");
	char own[PATH_MAX];
	struct cw_err err = { "" };
	int program, status;

	(void)snprintf(own, sizeof(own), "%s/collwatch-check-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (args->keep ? baseline_making_dir(args->keep, &err) < 0 : !mkdtemp(own)) {
		fprintf(stderr, "collwatch: %s\n",
			args->keep ? err.text : "cannot make a directory for temporary files");
		return BASELINE_EXIT_USAGE;
	}
	status = baseline_making_run(&args->making, args->keep ? args->keep : own, &program);
	if (status == BASELINE_EXIT_EQUAL)
		status = compare(args, args->keep ? args->keep : own, program);
	if (!args->keep)
		baseline_dir_remove(own);
	return status;
}

static int check(struct args *args)
{
	for (unsigned dtype = 0; dtype < CW_DTYPE__MAX; dtype++) {
		if (!isnan(args->rtol))
			args->request.options.of[dtype].rtol = args->rtol;
		if (!isnan(args->atol))
			args->request.options.of[dtype].atol = args->atol;
	}
	if (!baseline_dir_has(args->dir)) {
		fprintf(stderr, "collwatch: %s: no baselines in it\n", args->dir);
		return BASELINE_EXIT_USAGE;
	}
	if (args->making.n_paths == 1 && baseline_dir_has(args->making.paths[0]))
		return compare(args, args->making.paths[0], 0);
	return check_made(args);
}

int cw_verb_baseline(int argc, char **argv)
{
	_cleanup_(freep) char **paths = cw_or_exit(calloc((size_t)argc + 1, sizeof(*paths)));
	struct args args = { .making.paths = paths, .rtol = NAN, .atol = NAN };

	cw_baseline_options_init(&args.request.options);
	(void)cw_options_parse(&cw_argp_baseline, argc, argv, ARGP_IN_ORDER, &args);
	return strcmp(args.verb, "record") == 0 ? record(&args) : check(&args);
}
