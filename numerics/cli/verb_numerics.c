/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `numerics` reports on a job's numbers. It uses the tensor summaries in flight records, which are
 * files or belong to live processes. It finds the rank that fed the first NaN or infinity into a
 * call, values near infinity, and results that differ but should be equal.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask_options.h"
#include "cli/control.h"
#include "cli/options.h"
#include "cli/terminal/pager.h"
#include "cli/terminal/progress_bar.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "common/parse.h"
#include "common/text.h"
#include "model/op.h"
#include "numerics/cli/numerics_buckets.h"
#include "numerics/cli/numerics_bundle.h"
#include "numerics/cli/numerics_coverage.h"
#include "numerics/cli/numerics_doc.h"
#include "numerics/cli/numerics_modules.h"
#include "numerics/cli/numerics_nodes.h"
#include "numerics/cli/numerics_traced.h"
#include "numerics/doc/numerics_text.h"
#include "numerics/read/numerics_files.h"

#define TEXT_BYTES 1024
#define LAST_MAX 1024u
#define LAST_DEFAULT 8u
/* We read a running job at most this often. */
#define MOST_READINGS 5u

enum { OPT_UID = 256, OPT_TRACE_STEPS };

struct numerics_args {
	char **paths; /* records first, then files of collwatch.torch */
	uint32_t n_paths, n_records;
	uint64_t last;
	int64_t uid; /* user of the job; -1 = any user */
	struct numerics_steps traced;
	struct cw_ask_options ask;
	bool no_pager;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct numerics_args *args = state->input;
	uint64_t uid = 0;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
		state->child_inputs[1] = &args->no_pager;
		return 0;
	case OPT_TRACE_STEPS:
		if (numerics_steps_parse(arg, &args->traced) < 0)
			argp_error(state,
				   "--trace-steps: \"%s\": give steps and ranges of steps "
				   "(1,3,10-20, %u at most), or \"all\"",
				   arg, NUMERICS_STEPS_MAX);
		return 0;
	case 'n':
		if (cw_parse_u64(arg, 0, LAST_MAX, &args->last) < 0)
			argp_error(state, "--last: 0 to %u", LAST_MAX);
		return 0;
	case OPT_UID:
		if (cw_parse_u64(arg, 0, UINT32_MAX, &uid) < 0)
			argp_error(state, "--uid: \"%s\" is not a user's number", arg);
		args->uid = (int64_t)uid;
		return 0;
	case ARGP_KEY_ARGS:
		args->paths = state->argv + state->next;
		args->n_paths = (uint32_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		if (!args->n_paths)
			argp_error(state, "give flight records or files of collwatch.torch (one "
					  "per rank), a job's name, or a bundle");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_numerics = {
	.options =
		(const struct argp_option[]){
			{ "last", 'n', "N", 0,
			  "Number of tensors to show before a rank's first NaN or infinity, and of "
			  "lines of code before a stop (default: 8)",
			  0 },
			{ "trace-steps", OPT_TRACE_STEPS, "STEPS", 0,
			  "Show each call of these steps (1,3,10-20, or all), which collwatch.torch traced",
			  0 },
			{ "uid", OPT_UID, "UID", 0,
			  "The user of the job, if several users have a job of that name", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_ask_paged_children,
	.args_doc =
		"RECORD... [FILE...]\nPID... [FILE...]\nJOB [FILE...]\nBUNDLE [FILE...]\nFILE...",
	.doc = "Find problems in the tensor summaries of a job's flight records: the first NaN or "
	       "infinity, values near infinity, results that differ between ranks.\vA JOB must be "
	       "running: the command reads its processes on this host that the caller may read "
	       "and, through the daemon, those on other nodes. A BUNDLE is the directory of an "
	       "incident with the summaries of its leader's ranks. FILEs are written by "
	       "collwatch.torch for modules and operators; with records, they show the parameters "
	       "whose gradients a call carried. A job has summaries if it runs with "
	       "COLLWATCH_SUMMARY=full or sampled. Exit status: 0 no finding, 2 findings, 3 no "
	       "data.",
};

static void show_sample(const struct cw_numerics_job *job, uint32_t sample)
{
	const struct cw_numerics_sample *l = &job->samples[sample];
	char call[TEXT_BYTES], size[48];

	if (l->elements == l->offered)
		(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)l->offered);
	else
		(void)snprintf(size, sizeof(size), "%llu of %llu", (unsigned long long)l->elements,
			       (unsigned long long)l->offered);
	printf("    %-3s %-28s %s x %s  absmin %.3g  absmax %.3g  mean %.3g",
	       l->is_output ? "out" : "in", cw_numerics_text_call(job, sample, call, sizeof(call)),
	       cw_dtype_name(l->dtype), size, l->abs_min, l->abs_max, l->mean);
	if (cw_numerics_is_bad(l))
		printf("  NaN %llu  Inf %llu", (unsigned long long)l->nans,
		       (unsigned long long)l->infs);
	if (l->step >= 0)
		printf("  step %lld", (long long)l->step);
	putchar('\n');
}

static void show_before(const struct numerics_args *args, const struct cw_numerics_job *job,
			const struct cw_numerics_report *said, uint32_t rank)
{
	const struct cw_numerics_rank_said *k = &said->ranks[rank];
	uint32_t n = k->first_bad - k->first;

	if (n > args->last)
		n = (uint32_t)args->last;
	printf("  rank %d, the %u tensor%s before its first NaN or Inf, and that:\n",
	       job->ranks[rank].rank, n, n == 1 ? "" : "s");
	for (uint32_t i = k->first_bad - n; i <= k->first_bad; i++)
		show_sample(job, i);
}

static void show_firsts(const struct numerics_args *args, const struct cw_numerics_job *job,
			const struct cw_numerics_report *said)
{
	char text[TEXT_BYTES];

	for (uint32_t i = 0; i < said->n_firsts; i++)
		printf("%s\n", cw_numerics_text_first(job, said, i, text, sizeof(text)));
	if (said->n_firsts > 1)
		printf("  (the order of these is unknown: their calls are on different "
		       "communicators, or are the same call)\n");
	else if (said->is_first_by_clock)
		printf("  (by the clocks of their hosts)\n");
	for (uint32_t i = 0; i < said->n_rows; i++)
		printf("%s\n", cw_numerics_text_row(job, &said->rows[i], text, sizeof(text)));
	for (uint32_t i = 0; i < said->n_firsts; i++)
		show_before(args, job, said, job->samples[said->firsts[i].sample].rank);
}

static void over_limit(uint32_t n, const char *what)
{
	if (n)
		printf("  … and %u more %s\n", n, what);
}

static void show_text(const struct numerics_args *args, const struct cw_numerics_input *in,
		      const struct cw_numerics_report *said)
{
	const struct cw_numerics_job *job = &in->job;
	char text[TEXT_BYTES];

	cw_pager_open(args->no_pager);
	if (said->n_bad)
		show_firsts(args, job, said);
	over_limit(said->n_rows_over_limit, "rows of such steps");
	for (uint32_t i = 0; i < said->n_headroom; i++)
		printf("%s\n",
		       cw_numerics_text_headroom(job, &said->headroom[i], text, sizeof(text)));
	over_limit(said->n_headroom_over_limit, "calls near their type's limit");
	for (uint32_t i = 0; i < said->n_ranges; i++)
		printf("%s\n", cw_numerics_text_range(job, &said->ranges[i], text, sizeof(text)));
	over_limit(said->n_ranges_over_limit,
		   "calls with too many values at a limit of their type");
	for (uint32_t i = 0; i < said->n_divergences; i++)
		printf("%s\n", cw_numerics_text_divergence(job, said, &said->divergences[i], text,
							   sizeof(text)));
	over_limit(said->n_divergences_over_limit, "calls with different results");
	for (uint32_t i = 0; i < said->n_roundings; i++)
		printf("%s\n", cw_numerics_text_rounding(job, said, &said->roundings[i], text,
							 sizeof(text)));
	over_limit(said->n_roundings_over_limit, "calls with different results on unlike devices");
	for (uint32_t i = 0; i < said->n_suspects; i++)
		printf("%s\n",
		       cw_numerics_text_suspect(job, &said->suspects[i], text, sizeof(text)));
	for (uint32_t i = 0; i < said->n_imbalances; i++)
		printf("%s\n",
		       cw_numerics_text_imbalance(job, &said->imbalances[i], text, sizeof(text)));
	over_limit(said->n_imbalances_over_limit, "sums that do not add up");
	if (!said->n_bad && !cw_numerics_is_alarming(said))
		printf("no finding: no NaN, no infinity, no growth towards infinity, and all "
		       "copies that must be equal are equal%s\n",
		       said->n_roundings ? ", but for those of unlike devices" : "");
	printf("%s\n", numerics_coverage_text(in, said, text, sizeof(text)));
}

static bool has_summaries(const struct cw_numerics_input *in)
{
	bool some = false;

	for (uint32_t i = 0; i < in->job.n_ranks; i++)
		some = some || in->sources[i].n_kept;
	return some;
}

static void free_report(struct cw_numerics_report *report)
{
	cw_numerics_report_fini(report);
}

static void on_file(void *user, uint32_t done, uint32_t total)
{
	struct cw_progress_bar *bar = user;

	bar->total = total; /* only now do we know how many files a job has */
	cw_progress_bar_at(bar, done, NULL);
}

/* Explains why we have no result, although ranks of an earlier run had summaries. */
static void explain_set_aside(const struct numerics_args *args, const struct cw_numerics_input *in,
			      struct cw_err *err)
{
	(void)cw_err_set(err, ENODATA,
			 "%s: no tensor summaries came of its last run, which is without "
			 "COLLWATCH_SUMMARY or has only begun; %u rank%s of an earlier run %s set "
			 "aside%s%s%s",
			 args->paths[0], in->n_set_aside, in->n_set_aside == 1 ? "" : "s",
			 in->n_set_aside == 1 ? "was" : "were",
			 in->is_bad_set_aside ? ", with NaN or Inf" : "",
			 in->silent ? "; no answer from " : "", in->silent ? in->silent : "");
}

/* Appends advice to the error that this host has no such job. */
static int explain(const struct numerics_nodes *nodes, const struct cw_numerics_input *in,
		   bool is_asked, int r, struct cw_err *err)
{
	size_t len = strlen(err->text);
	char *to = err->text + len;

	len = sizeof(err->text) - len;
	if (!is_asked)
		(void)snprintf(to, len, "; no daemon answers on %s, so no other node was asked",
			       nodes->control);
	else if (in->silent)
		(void)snprintf(to, len, "; no answer from %s", in->silent);
	else
		(void)snprintf(to, len,
			       "; no node has tensor summaries of this job (COLLWATCH_SUMMARY)");
	return r;
}

/*
 * If the user named a job, adds its ranks on other nodes. r: the result of the search on this host.
 */
static int gather(const struct numerics_args *args, int r, struct cw_numerics_input *in,
		  struct cw_err *err)
{
	_cleanup_(numerics_gather_fini) struct numerics_gather g = { NULL };
	const struct numerics_nodes nodes = {
		.control = cw_control_path(args->ask.control),
		.job = args->paths[0],
		.uid = args->uid,
		.is_quiet = args->ask.json,
	};
	struct cw_err of_nodes = { "" };
	bool is_asked = false;
	int more;

	if ((r == 0 && in->uid < 0) || (r < 0 && (r != -ENOENT || strchr(nodes.job, '/'))))
		return r;
	if (r < 0)
		*in = (struct cw_numerics_input){ .uid = -1 };
	more = numerics_nodes_gather(&nodes, in, &g, &is_asked, &of_nodes);
	if (more == 0)
		more = numerics_gather_end(&g, in);
	if (more < 0)
		return cw_err_set(err, -more, "%s",
				  *of_nodes.text   ? of_nodes.text
				  : more == -E2BIG ? "there are too many tensor summaries"
						   : strerror(-more));
	return in->job.n_ranks || in->n_set_aside ? 0 : explain(&nodes, in, is_asked, r, err);
}

static int read_all(const struct numerics_args *args, struct cw_numerics_input *in,
		    struct cw_err *err)
{
	struct cw_progress_bar bar;
	const struct cw_import_watch watch = { on_file, &bar };
	int r;

	if (numerics_bundle_is(args->paths[0]) && args->n_records > 1)
		return cw_err_set(err, EINVAL, "%s is a bundle: give no records with it",
				  args->paths[0]);
	if (numerics_bundle_is(args->paths[0]))
		return numerics_bundle_read(args->paths[0], in, err);
	cw_progress_bar_begin(&bar, "files", args->n_records, args->ask.json);
	r = cw_numerics_files_read(args->paths, args->n_records, args->uid, &watch, in, err);
	cw_progress_bar_end(&bar);
	return args->n_records == 1 ? gather(args, r, in, err) : r;
}

/* Writes one line with the ranks that had the first bad number. */
static void name_firsts(const struct cw_numerics_job *job, const struct cw_numerics_report *said,
			char *buf, size_t len)
{
	char text[TEXT_BYTES];

	buf[0] = '\0';
	for (uint32_t i = 0; i < said->n_firsts; i++)
		cw_text_append(buf, len, "%s;",
			       cw_numerics_text_first(job, said, i, text, sizeof(text)));
}

static int read_once(const struct numerics_args *args, struct cw_numerics_input *in,
		     struct cw_numerics_report *said)
{
	struct cw_err err = { "" };
	int r = read_all(args, in, &err);

	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return r == -ENODATA ? CW_EXIT_NO_DATA : CW_EXIT_ERROR;
	}
	if (!has_summaries(in)) {
		(void)cw_err_set(&err, ENODATA,
				 "no tensor summaries in these records: the job ran without "
				 "COLLWATCH_SUMMARY");
		if (in->n_set_aside)
			explain_set_aside(args, in, &err);
		fprintf(stderr, "collwatch: %s\n", err.text);
		return CW_EXIT_NO_DATA;
	}
	(void)cw_or_exit_result(cw_numerics_judge(&in->job, said));
	return CW_EXIT_OK;
}

/*
 * Reads running ranks until the result is stable. We read one rank after the other. A NaN may arise
 * on a rank after we have read it, and reach a rank that we read later. If two readings name the
 * same first rank, the second one read every rank after that NaN.
 */
static int read_until_settled(const struct numerics_args *args, struct cw_numerics_input *in,
			      struct cw_numerics_report *said)
{
	char before[4 * TEXT_BYTES] = "", now[4 * TEXT_BYTES];
	int r = read_once(args, in, said);

	for (unsigned i = 1; r == CW_EXIT_OK && in->is_living && i < MOST_READINGS; i++) {
		name_firsts(&in->job, said, now, sizeof(now));
		if (strcmp(now, before) == 0)
			break;
		memcpy(before, now, sizeof(before));
		cw_numerics_report_fini(said);
		cw_numerics_input_fini(in);
		*said = (struct cw_numerics_report){ .ranks = NULL };
		r = read_once(args, in, said);
	}
	return r;
}

/* ---- files of collwatch.torch ---- */

struct modules {
	struct cw_tensor_lines lines;
	struct cw_modules_report said;
};

static void free_modules(struct modules *m)
{
	cw_tensor_lines_fini(&m->lines);
}

static int read_modules(const struct numerics_args *args, struct modules *ret)
{
	struct cw_err err = { "" };

	if (cw_tensor_lines_read(args->paths + args->n_records, args->n_paths - args->n_records,
				 &ret->lines, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return CW_EXIT_ERROR;
	}
	cw_modules_judge(ret->lines.ranks, ret->lines.n, &ret->said);
	return CW_EXIT_OK;
}

static void show_modules(const struct numerics_args *args, const struct modules *m)
{
	cw_pager_open(args->no_pager);
	numerics_modules_show(stdout, &m->lines, &m->said, args->last);
	numerics_traced_show(stdout, &m->lines, &args->traced);
}

static json_t *modules_doc(const struct numerics_args *args, const struct modules *m)
{
	json_t *doc = numerics_modules_doc(&m->lines, &m->said, args->last);

	if (doc && numerics_traced_doc(&m->lines, &args->traced, doc) < 0) {
		json_decref(doc);
		doc = NULL;
	}
	return doc;
}

static int status_of_modules(const struct modules *m)
{
	if (numerics_modules_is_alarming(&m->lines, &m->said))
		return CW_EXIT_HANG;
	return numerics_modules_has_looked(&m->lines) ? CW_EXIT_OK : CW_EXIT_NO_DATA;
}

static void print_json(json_t *doc)
{
	cw_print_json(cw_or_exit(doc));
	json_decref(doc);
}

static int say_of_modules(const struct numerics_args *args)
{
	_cleanup_(free_modules) struct modules m = { .lines = { .n = 0 } };

	if (read_modules(args, &m) != CW_EXIT_OK)
		return CW_EXIT_ERROR;
	if (args->ask.json)
		print_json(modules_doc(args, &m));
	else
		show_modules(args, &m);
	return status_of_modules(&m);
}

/* ---- records, with such files beside them ---- */

static json_t *whole_doc(const struct numerics_args *args, const struct cw_numerics_input *in,
			 const struct cw_numerics_report *said, const struct modules *m)
{
	json_t *doc = numerics_doc(in, said, (uint32_t)args->last);

	if (doc && m->lines.n && json_object_set_new(doc, "modules", modules_doc(args, m)) < 0) {
		json_decref(doc);
		doc = NULL;
	}
	return doc;
}

static int say_of_records(const struct numerics_args *args)
{
	_cleanup_(cw_numerics_input_fini) struct cw_numerics_input in = { .sources = NULL };
	_cleanup_(free_report) struct cw_numerics_report said = { .ranks = NULL };
	_cleanup_(free_modules) struct modules m = { .lines = { .n = 0 } };
	bool has_modules = args->n_records < args->n_paths;
	int r = read_until_settled(args, &in, &said);

	if (r == CW_EXIT_OK && has_modules)
		r = read_modules(args, &m);
	if (r != CW_EXIT_OK)
		return r;
	if (has_modules)
		(void)cw_or_exit_result(numerics_buckets_fill(&in, &said, &m.lines));
	if (args->ask.json)
		print_json(whole_doc(args, &in, &said, &m));
	if (!args->ask.json)
		show_text(args, &in, &said);
	if (!args->ask.json && has_modules)
		show_modules(args, &m);
	if (cw_numerics_is_alarming(&said))
		return CW_EXIT_HANG;
	return has_modules && status_of_modules(&m) == CW_EXIT_HANG ? CW_EXIT_HANG : CW_EXIT_OK;
}

/*
 * Sorts paths: records first, then files of collwatch.torch, each kind in its old order. We inspect
 * each file only once, because it may change.
 */
static void sort_paths(struct numerics_args *args)
{
	char **sorted = cw_or_exit(calloc((size_t)args->n_paths + 1, sizeof(*sorted)));
	_cleanup_(freep) bool *are_lines =
		cw_or_exit(calloc((size_t)args->n_paths + 1, sizeof(*are_lines)));
	uint32_t n = 0;

	for (uint32_t i = 0; i < args->n_paths; i++)
		are_lines[i] = cw_tensor_lines_is(args->paths[i]);
	for (uint32_t i = 0; i < args->n_paths; i++)
		if (!are_lines[i])
			sorted[n++] = args->paths[i];
	args->n_records = n;
	for (uint32_t i = 0; i < args->n_paths; i++)
		if (are_lines[i])
			sorted[n++] = args->paths[i];
	args->paths = sorted;
}

static int say(struct numerics_args *args)
{
	int r;

	if (args->n_records == 0)
		return say_of_modules(args);
	if (args->traced.n && args->n_records == args->n_paths) {
		fprintf(stderr, "collwatch: --trace-steps needs files of collwatch.torch: flight "
				"records have no steps\n");
		return CW_EXIT_ERROR;
	}
	r = say_of_records(args);
	/* If the records contain no statistics, we report on the files of collwatch.torch alone. */
	return r == CW_EXIT_NO_DATA && args->n_records < args->n_paths ? say_of_modules(args) : r;
}

int cw_verb_numerics(int argc, char **argv)
{
	struct numerics_args args = { .last = LAST_DEFAULT, .uid = -1 };
	int r;

	(void)cw_options_parse(&cw_argp_numerics, argc, argv, 0, &args);
	sort_paths(&args);
	r = say(&args);
	free(args.paths);
	return r;
}
