/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baseline`: keeps what a run's tensors were, op by op, and holds another run against it
 * (docs/numerics.md#baseline-and-check). The program's output is its own; what we say while it runs
 * goes to standard error.
 */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/baseline/baseline_doc.h"
#include "cli/baseline/baseline_job.h"
#include "cli/baseline/baseline_ranks.h"
#include "cli/baseline/baseline_text.h"
#include "cli/options.h"
#include "cli/run/run_agent.h"
#include "cli/run/run_child.h"
#include "cli/terminal/page_file.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "import/tensors/tensor_baseline.h"
#include "import/tensors/tensor_lines.h"
#include "report/html/html_baseline.h"

/* As diff(1) and cmp(1) have them. */
enum { EXIT_EQUAL = 0, EXIT_DIFFERS = 1, EXIT_USAGE = 2, EXIT_INCOMPARABLE = 3 };

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
	OPT_HTML
};

struct args {
	const char *verb, *dir, *output, *agent, *summary, *keep;
	char **program;
	char **paths;
	uint32_t n_paths;
	double rtol, atol; /* NAN = not given */
	bool json, html;
	struct baseline_request request;
};

static void take_word(struct args *args, char *word, struct argp_state *state)
{
	if (state->quoted && state->next > state->quoted) {
		args->program = &state->argv[state->next - 1];
		state->next = state->argc;
	} else if (!args->verb) {
		args->verb = word;
	} else if (strcmp(args->verb, "check") == 0 && !args->dir) {
		args->dir = word;
	} else {
		args->paths[args->n_paths++] = word;
	}
}

static double tolerance(const char *arg, struct argp_state *state)
{
	char *rest;
	double v = strtod(arg, &rest);

	if (rest == arg || *rest || !isfinite(v) || v < 0)
		argp_error(state, "%s: a tolerance is a number, 0 or more", arg);
	return v;
}

static void check_all(const struct args *args, struct argp_state *state)
{
	bool records = args->verb && strcmp(args->verb, "record") == 0;

	if (!records && (!args->verb || strcmp(args->verb, "check") != 0))
		argp_error(state, "expected: record -o DIRECTORY …, or check DIRECTORY …");
	if (records && !args->output)
		argp_error(state, "record: -o DIRECTORY is where the baseline goes");
	if (!records && !args->dir)
		argp_error(state, "check: which baseline?");
	if (!args->program == !args->n_paths)
		argp_error(state, "give either flight records%s, or \"--\" and a program",
			   records ? "" : " or another baseline");
	if (records && (args->json || args->html || args->request.n_filters || !isnan(args->rtol) ||
			!isnan(args->atol) || args->keep))
		argp_error(
			state,
			"--json, --html, --rtol, --atol, --only, --skip and --keep go with check");
	if (!records && args->output && !args->html)
		argp_error(state, "-o goes with record, or --html; --keep keeps what is checked");
	if (args->json && args->html)
		argp_error(state, "give either --json or --html");
	if (!args->program && (args->agent || args->summary))
		argp_error(state, "--agent and --summary go with a program");
	if (args->summary && strcmp(args->summary, "full") != 0 &&
	    strcmp(args->summary, "sampled") != 0)
		argp_error(state, "--summary: full or sampled");
}

static void add_filter(struct args *args, const char *arg, bool skips, struct argp_state *state)
{
	int r = baseline_request_filter(&args->request, arg, skips);

	if (r == -E2BIG)
		argp_error(state, "--only, --skip: more than %u", BASELINE_FILTERS);
	if (r < 0)
		argp_error(state, "%s: kind=PATTERN, comm=PATTERN or site=PATTERN", arg);
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
		args->agent = arg;
		return 0;
	case OPT_SUMMARY:
		args->summary = arg;
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
			  "record: directory of the baseline; check --html: file of the page", 0 },
			{ "agent", OPT_AGENT, "FILE", 0,
			  "The agent (default: the one of this installation)", 0 },
			{ "summary", OPT_SUMMARY, "POLICY", 0,
			  "full (default) or sampled, of which only tensors that were looked at "
			  "whole are compared",
			  0 },
			{ "rtol", OPT_RTOL, "X", 0,
			  "Relative tolerance of elements, for all types (default: each type's)",
			  0 },
			{ "atol", OPT_ATOL, "X", 0,
			  "Absolute tolerance of elements, for all types (default: 0)", 0 },
			{ "only", OPT_ONLY, "KEY=PATTERN", 0,
			  "Compare ops of that kind, comm or site only; may be repeated", 0 },
			{ "skip", OPT_SKIP, "KEY=PATTERN", 0,
			  "Leave ops of that kind, comm or site out; may be repeated", 0 },
			{ "keep", OPT_KEEP, "DIRECTORY", 0,
			  "check: where to keep what was made of a program or of records", 0 },
			{ "json", OPT_JSON, NULL, 0, "check: print a document", 0 },
			{ "html", OPT_HTML, NULL, 0, "check: write a page", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.args_doc = "record -o DIRECTORY -- PROGRAM [ARGUMENT…]\n"
		    "record -o DIRECTORY RECORD…\n"
		    "check DIRECTORY -- PROGRAM [ARGUMENT…]\n"
		    "check DIRECTORY RECORD…\n"
		    "check DIRECTORY DIRECTORY",
	.doc = "Keep what went into each collective of a run and what came out, and hold another "
	       "run against it. A RECORD is a flight record, or a file of collwatch.torch with a "
	       "rank's calls of operators.\v"
	       "Exit status of check: 0 equal, 1 differs, 2 usage or I/O error, 3 cannot be "
	       "compared; of record: 0, 1 the program failed, 2, 3 no tensors were looked at.",
};

/* ---- making a baseline ---- */

static int make_dir(const char *dir, struct cw_err *err)
{
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return cw_err_set(err, errno, "%s: %s", dir, strerror(errno));
	if (baseline_job_is(dir))
		return cw_err_set(err, EEXIST, "%s: has baselines already", dir);
	return 0;
}

static void set_unless_set(const char *name, const char *value)
{
	(void)setenv(name, value, 0);
}

static void say_lost(const struct cw_baseline_collected *said)
{
	const uint64_t *n = said->counters;

	fprintf(stderr, "collwatch: rank %d: ops %llu, tensors %llu", said->rank,
		(unsigned long long)said->n_ops, (unsigned long long)n[CW_BASELINE_N_TENSORS]);
	if (n[CW_BASELINE_N_LOST_OPS] || n[CW_BASELINE_N_LOST_TENSORS])
		fprintf(stderr, "; lost ops %llu, lost tensors at most %llu",
			(unsigned long long)n[CW_BASELINE_N_LOST_OPS],
			(unsigned long long)n[CW_BASELINE_N_LOST_TENSORS]);
	if (n[CW_BASELINE_N_PARTIAL])
		fprintf(stderr, "; tensors looked at in part %llu",
			(unsigned long long)n[CW_BASELINE_N_PARTIAL]);
	if (n[CW_BASELINE_N_UNSEEN])
		fprintf(stderr, "; launches of graphs and calls without a number %llu",
			(unsigned long long)n[CW_BASELINE_N_UNSEEN]);
	fputc('\n', stderr);
}

static int say_end(const struct baseline_rank_end *end)
{
	if (end->error == -EEXIST)
		fprintf(stderr,
			"collwatch: process %u is another one of rank %d: it is not in the "
			"baseline\n",
			end->said.pid, end->said.rank);
	else if (end->error == -ENODATA)
		fprintf(stderr, "collwatch: process %u has no rank: it is not in the baseline\n",
			end->said.pid);
	else if (end->error < 0)
		fprintf(stderr, "collwatch: rank %d: %s\n", end->said.rank, strerror(-end->error));
	else
		say_lost(&end->said);
	return end->error;
}

/* Of all ranks. What a disk refused is worse than what was not looked at. */
static int say_ends(const struct baseline_rank_end *ends, uint32_t n, uint64_t n_operators)
{
	uint64_t tensors = n_operators;
	int status = EXIT_EQUAL;

	for (uint32_t i = 0; i < n; i++) {
		if (say_end(&ends[i]) < 0)
			status = EXIT_USAGE;
		tensors += ends[i].said.counters[CW_BASELINE_N_TENSORS];
	}
	if (status == EXIT_EQUAL && !tensors) {
		fprintf(stderr, n ? "collwatch: no tensors were looked at\n"
				  : "collwatch: no rank with NCCL calls was seen\n");
		status = EXIT_INCOMPARABLE;
	}
	return status;
}

/* What collwatch.torch wrote of a rank's operators. */
static int read_lines(const char *path, const char *dir, uint64_t *n_operators)
{
	struct cw_tensor_baseline_said said;
	struct cw_err err = { "" };
	int r = cw_tensor_baseline_make(path, dir, &said, &err);

	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return r;
	}
	fprintf(stderr, "collwatch: rank %d: calls of operators %llu", said.rank,
		(unsigned long long)said.n_calls);
	if (said.n_lost)
		fprintf(stderr, "; lost calls %llu", (unsigned long long)said.n_lost);
	if (said.n_unread)
		fprintf(stderr, "; tensors that could not be looked at %llu",
			(unsigned long long)said.n_unread);
	fputc('\n', stderr);
	*n_operators += said.n_calls;
	return 0;
}

static int is_of_lines(const struct dirent *entry)
{
	return fnmatch("collwatch-tensors-rank*.jsonl", entry->d_name, 0) == 0;
}

/* What the program's ranks left in the directory: they become baselines, which are read faster. */
static int read_left(const char *dir, uint64_t *n_operators)
{
	struct dirent **found = NULL;
	int n = scandir(dir, &found, is_of_lines, alphasort), r = 0;
	char path[PATH_MAX];

	for (int i = 0; i < n; i++) {
		if (r == 0 && snprintf(path, sizeof(path), "%s/%s", dir, found[i]->d_name) <
				      (int)sizeof(path)) {
			r = read_lines(path, dir, n_operators);
			if (r == 0)
				(void)unlink(path);
		}
		free(found[i]);
	}
	free(found);
	if (n < 0) {
		r = -errno;
		fprintf(stderr, "collwatch: %s: %m\n", dir);
	}
	return r;
}

/* Exit status; *ret_program is 0 where the program ended well. */
static int run_program(const struct args *args, const char *dir, int *ret_program)
{
	struct run_child child = { .command = args->program };
	_cleanup_(freep) struct baseline_rank_end *ends = NULL;
	struct baseline_ranks *ranks;
	char agent[PATH_MAX], lines[PATH_MAX];
	struct cw_err err = { "" };
	uint64_t n_operators = 0;
	uint32_t n = 0;
	int wait_status, status, r;

	/* The program may change its directory. */
	if (!realpath(dir, lines)) {
		fprintf(stderr, "collwatch: %s: %m\n", dir);
		return EXIT_USAGE;
	}
	(void)setenv("COLLWATCH_TENSORS", lines, 1);
	(void)setenv("COLLWATCH_SUMMARY", args->summary ? args->summary : "full", 1);
	set_unless_set("COLLWATCH_CALL_STACKS", "on");
	r = run_agent_load(args->agent, args->program[0], agent, &err);
	if (r == 0)
		r = baseline_ranks_start(dir, &ranks);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text[0] ? err.text : strerror(-r));
		return EXIT_USAGE;
	}
	wait_status = run_child(&child);
	r = baseline_ranks_stop(ranks, &ends, &n);
	if (wait_status < 0 || r < 0) {
		fprintf(stderr, "collwatch: %s\n", strerror(-(wait_status < 0 ? wait_status : r)));
		return EXIT_USAGE;
	}
	*ret_program = wait_status;
	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status))
		fprintf(stderr, "collwatch: the program ended with exit status %d\n",
			WEXITSTATUS(wait_status));
	else if (WIFSIGNALED(wait_status))
		fprintf(stderr, "collwatch: the program was killed by signal %d\n",
			WTERMSIG(wait_status));
	r = read_left(dir, &n_operators);
	status = say_ends(ends, n, n_operators);
	return r < 0 ? EXIT_USAGE : status;
}

static int read_records(const struct args *args, const char *dir)
{
	_cleanup_(freep) struct baseline_rank_end *ends = calloc(args->n_paths, sizeof(*ends));
	uint64_t n_operators = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < args->n_paths; i++) {
		struct cw_err err = { "" };

		if (ends && cw_tensor_lines_is(args->paths[i])) {
			if (read_lines(args->paths[i], dir, &n_operators) < 0)
				return EXIT_USAGE;
			continue;
		}
		if (!ends ||
		    cw_baseline_collect_file(args->paths[i], dir, &ends[n++].said, &err) < 0) {
			fprintf(stderr, "collwatch: %s: %s\n", args->paths[i],
				ends ? err.text : "out of memory");
			return EXIT_USAGE;
		}
	}
	return say_ends(ends, n, n_operators);
}

static int make_baseline(const struct args *args, const char *dir, int *ret_program)
{
	*ret_program = 0;
	return args->program ? run_program(args, dir, ret_program) : read_records(args, dir);
}

static int record(const struct args *args)
{
	struct cw_err err = { "" };
	int program, status;

	if (make_dir(args->output, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return EXIT_USAGE;
	}
	status = make_baseline(args, args->output, &program);
	return status != EXIT_EQUAL ? status : program ? EXIT_DIFFERS : EXIT_EQUAL;
}

/* ---- checking ---- */

static void show_denied(const struct baseline_job *job)
{
	const char *a = baseline_text_denied(job, false), *b = baseline_text_denied(job, true);

	if (*a)
		printf("operators not looked at: %s\n", a);
	if (strcmp(a, b) != 0)
		printf("operators not looked at in what was checked: %s\n", *b ? b : "none");
}

static void show_text(const struct baseline_job *job)
{
	static const char *const names[] = { "the baseline", "what was checked" };
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
	return out ? r : -EIO; /* that has been said */
}

/* 0, or -errno, which has been said. */
static int show(const struct args *args, const struct baseline_job *job)
{
	json_t *doc;
	int r = 0;

	if (!args->json && !args->html) {
		show_text(job);
		return 0;
	}
	doc = baseline_doc(job, &args->request);
	if (!doc) {
		fprintf(stderr, "collwatch: out of memory\n");
		return -ENOMEM;
	}
	if (args->html)
		r = show_page(args, doc);
	else
		cw_print_json(doc);
	json_decref(doc);
	return r;
}

static int compare(const struct args *args, const char *dir, int program)
{
	static const int statuses[] = { [BASELINE_OUTCOME_EQUAL] = EXIT_EQUAL,
					[BASELINE_OUTCOME_DIFFERS] = EXIT_DIFFERS,
					[BASELINE_OUTCOME_NONE] = EXIT_INCOMPARABLE };
	_cleanup_(baseline_job_fini) struct baseline_job job = { .parts = NULL };
	struct cw_err err = { "" };

	if (baseline_job_compare(args->dir, dir, &args->request, &job, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return EXIT_USAGE;
	}
	/* What it would have done else is not known. */
	if (program && job.outcome == BASELINE_OUTCOME_EQUAL) {
		job.outcome = BASELINE_OUTCOME_NONE;
		(void)snprintf(job.why, sizeof(job.why),
			       "what there is, is equal, but the program failed");
	}
	if (show(args, &job) < 0)
		return EXIT_USAGE;
	return statuses[job.outcome];
}

static int check_made(const struct args *args)
{
	const char *tmp = getenv("TMPDIR");
	char own[PATH_MAX];
	struct cw_err err = { "" };
	int program, status;

	(void)snprintf(own, sizeof(own), "%s/collwatch-check-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (args->keep ? make_dir(args->keep, &err) < 0 : !mkdtemp(own)) {
		fprintf(stderr, "collwatch: %s\n",
			args->keep ? err.text : "cannot make a directory for temporary files");
		return EXIT_USAGE;
	}
	status = make_baseline(args, args->keep ? args->keep : own, &program);
	if (status == EXIT_EQUAL)
		status = compare(args, args->keep ? args->keep : own, program);
	if (!args->keep)
		baseline_job_remove(own);
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
	if (!baseline_job_is(args->dir)) {
		fprintf(stderr, "collwatch: %s: no baselines in it\n", args->dir);
		return EXIT_USAGE;
	}
	if (args->n_paths == 1 && baseline_job_is(args->paths[0]))
		return compare(args, args->paths[0], 0);
	return check_made(args);
}

int cw_verb_baseline(int argc, char **argv)
{
	_cleanup_(freep) char **paths = calloc((size_t)argc + 1, sizeof(*paths));
	struct args args = { .paths = paths, .rtol = NAN, .atol = NAN };

	argp_err_exit_status = EXIT_USAGE;
	if (!paths) {
		fprintf(stderr, "collwatch: out of memory\n");
		return EXIT_USAGE;
	}
	cw_baseline_options_init(&args.request.options);
	(void)cw_options_parse(&cw_argp_baseline, argc, argv, ARGP_IN_ORDER, &args);
	return strcmp(args.verb, "record") == 0 ? record(&args) : check(&args);
}
