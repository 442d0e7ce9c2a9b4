/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labelled suite (docs/lab/suite.md): measures how often the verdict is right, and where it
 * is wrong.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/terminal/progress_bar.h"
#include "cli/verb.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/parse.h"
#include "lab/cli/suite_workers.h"
#include "lab/cli/verb_lab.h"
#include "lab/suite/generate.h"
#include "lab/suite/score.h"
#include "lab/suite/watch.h"
#include "lab/vjob/cluster.h"
#include "report/doc/advice.h"
#include "report/doc/incident_facts.h"

#define PROGRESS_EVERY_NS (5 * CW_NS_PER_S)

enum {
	OPT_SCALE = 256,
	OPT_JSON,
	OPT_COVERAGE,
	OPT_ONLY,
	OPT_VERBOSE,
	OPT_GENERATE,
	OPT_WAITS,
	OPT_SEED,
	OPT_JOBS,
	OPT_PRINT,
	OPT_TRACE,
	OPT_OUTCOMES,
	OPT_COMPLETION,
	OPT_NO_NOTICES,
	OPT_INCIDENTS,
};

#define JOBS_MAX SUITE_WORKERS_MAX

struct options {
	const char *path, *only;
	uint32_t scale;
	uint64_t generate, waits, seed;
	unsigned jobs;  /* 0 and 1: one scenario at a time */
	int completion; /* enum suite_completion; -1 = the scenario's own choice */
	bool no_notices, json, coverage, verbose, print, trace, outcomes, incidents;
	uint64_t print_index;
};

struct run {
	const struct options *opts;
	struct suite_workers workers;
	struct score score;
	struct cw_err err;
	uint64_t n_unscaled;
	struct cw_progress_bar bar; /* on a terminal */
	int64_t printed_ns;         /* without a terminal */
};

static const struct argp_option options[] = {
	{ "jobs", OPT_JOBS, "N", 0, "So many at once (1)", 0 },
	{ "ranks-scale", OPT_SCALE, "K", 0, "Jobs K times as large", 0 },
	{ "generate", OPT_GENERATE, "N", 0, "N random scenarios besides", 0 },
	{ "waits", OPT_WAITS, "N", 0,
	  "Random healthy jobs besides in which some wait for long, as many as have N such waits",
	  0 },
	{ "seed", OPT_SEED, "S", 0, "… of this seed (1)", 0 },
	{ "print", OPT_PRINT, "I", 0,
	  "Print the random scenario seed-S-I instead; with --waits, waits-S-I", 0 },
	{ "only", OPT_ONLY, "TEXT", 0, "Scenarios whose name contains this", 0 },
	{ "completion", OPT_COMPLETION, "HOW", 0,
	  "Collectives end for all at once (barrier), or for each member as NCCL's do (nccl); "
	  "without it as each scenario says, else barrier",
	  0 },
	{ "no-notices", OPT_NO_NOTICES, NULL, 0, "As with notices = false: pages only", 0 },
	{ "outcomes", OPT_OUTCOMES, NULL, 0, "A line per scenario instead of the tables", 0 },
	{ "incidents", OPT_INCIDENTS, NULL, 0,
	  "A line of JSON per page, notice and post-mortem instead of the tables: the document, its advice, and what was so "
	  "in the cluster when it was told",
	  0 },
	{ "coverage", OPT_COVERAGE, NULL, 0, "Fail where a pair has no scenario, and name it", 0 },
	{ "json", OPT_JSON, NULL, 0, "Print one JSON document and nothing else", 0 },
	{ "verbose", OPT_VERBOSE, NULL, 0, "A line per scenario on standard error", 0 },
	{ "trace", OPT_TRACE, NULL, 0,
	  "… and all that leaders log, what they think at each evaluation among it", 0 },
	{ 0 },
};

static uint64_t number(struct argp_state *state, const char *name, const char *text, uint64_t max)
{
	uint64_t value;

	if (cw_parse_u64(text, 0, max, &value) < 0)
		argp_error(state, "--%s %s: not a number up to %" PRIu64, name, text, max);
	return value;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct options *opts = state->input;

	switch (key) {
	case OPT_SCALE:
		opts->scale = (uint32_t)number(state, "ranks-scale", arg, 1024);
		return 0;
	case OPT_GENERATE:
		opts->generate = number(state, "generate", arg, 100000000);
		return 0;
	case OPT_WAITS:
		opts->waits = number(state, "waits", arg, 100000000);
		return 0;
	case OPT_SEED:
		opts->seed = number(state, "seed", arg, UINT64_MAX);
		return 0;
	case OPT_TRACE:
		opts->trace = opts->verbose = true;
		return 0;
	case OPT_NO_NOTICES:
		opts->no_notices = true;
		return 0;
	case OPT_OUTCOMES:
		opts->outcomes = true;
		return 0;
	case OPT_INCIDENTS:
		opts->incidents = true;
		return 0;
	case OPT_COMPLETION:
		if (strcmp(arg, "barrier") == 0)
			opts->completion = SUITE_BARRIER;
		else if (strcmp(arg, "nccl") == 0)
			opts->completion = SUITE_NCCL;
		else
			argp_error(state, "--completion %s: barrier or nccl?", arg);
		return 0;
	case OPT_PRINT:
		opts->print = true;
		opts->print_index = number(state, "print", arg, UINT32_MAX);
		return 0;
	case OPT_ONLY:
		opts->only = arg;
		return 0;
	case OPT_COVERAGE:
		opts->coverage = true;
		return 0;
	case OPT_JSON:
		opts->json = true;
		return 0;
	case OPT_VERBOSE:
		opts->verbose = true;
		return 0;
	case OPT_JOBS:
		opts->jobs = (unsigned)number(state, "jobs", arg, JOBS_MAX);
		if (!opts->jobs)
			argp_error(state, "--jobs 0 would never end");
		return 0;
	case ARGP_KEY_ARG:
		if (opts->path)
			argp_error(state, "one directory at a time");
		opts->path = arg;
		return 0;
	case ARGP_KEY_END:
		if (!opts->path && !opts->generate && !opts->waits && !opts->print)
			argp_usage(state);
		if (opts->trace && opts->jobs > 1)
			argp_error(state, "--trace goes with one at a time");
		if (opts->json + opts->outcomes + opts->incidents > 1)
			argp_error(state, "--json, --outcomes and --incidents exclude each other");
		if (opts->incidents && opts->jobs > 1)
			argp_error(state, "--incidents goes with one at a time");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_suite = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[DIRECTORY|FILE]",
	.doc = "Run labelled scenarios (*.scn) through daemons and leaders in virtual time, and say how often they "
	       "are right.\v"
	       "Exit status: 0 all right, 1 error or (--coverage) a pair without scenario, 2 "
	       "something was missed.",
};

/* ---- running ---- */

static void print_progress(struct run *run)
{
	int64_t now = cw_clock_now_ns(&cw_clock_system);
	char missed[32];

	(void)snprintf(missed, sizeof(missed), "%" PRIu64 " missed", run->score.n_missed);
	cw_progress_bar_at(&run->bar, run->score.n + run->n_unscaled, missed);
	if (isatty(STDERR_FILENO))
		return;
	if (!run->printed_ns)
		run->printed_ns = now;
	if (now - run->printed_ns < PROGRESS_EVERY_NS)
		return;
	run->printed_ns = now;
	fprintf(stderr, "collwatch: %" PRIu64 " scenario%s, %s\n", run->score.n,
		run->score.n == 1 ? "" : "s", missed);
}

static void print_trace(const struct suite_scenario *s, const struct outcome *o)
{
	if (o->is_alert)
		fprintf(stderr, "%s:%u: %s: %s after %.1f s: %s\n", s->file, s->line, s->name,
			cw_confidence_name(o->confidence), (double)o->after_ns / CW_NS_PER_S,
			o->summary);
	else
		fprintf(stderr, "%s:%u: %s: silence after %u check%s\n", s->file, s->line, s->name,
			o->n_checks, o->n_checks == 1 ? "" : "s");
}

/*
 * Prints an alert as WHERE NAME: SECONDS CLASS DETAIL CONFIDENCE CULPRITS, "-" for missing parts; a
 * notice has "notice" before the class.
 */
static void print_alert(const struct suite_scenario *s, const struct outcome *o)
{
	printf("%s:%u %s: %.3f %s%s %s %s ", s->file, s->line, s->name,
	       (double)o->after_ns / CW_NS_PER_S, o->is_notice ? "notice " : "",
	       cw_class_name(o->verdict_class), o->detail ? cw_detail_name(o->detail) : "-",
	       cw_confidence_name(o->confidence));
	for (uint32_t i = 0; i < o->n_culprits; i++)
		printf("%s%d", i ? "," : "", o->culprits[i]);
	printf("%s\n", o->n_culprits ? "" : "-");
}

/* Reports a wait with several notices. One notice per wait is enough for the user. */
static void print_wait(const struct suite_scenario *s, const struct outcome_wait *wait)
{
	if (wait->notices > 1)
		printf("%s:%u %s: a wait of %.0f s had %" PRIu32 " notices\n", s->file, s->line,
		       s->name, (double)wait->length_ns / CW_NS_PER_S, wait->notices);
}

static void print_outcome(const struct suite_scenario *s, const struct outcome *o)
{
	for (uint32_t i = 0; i < o->n_healthy_waits; i++)
		print_wait(s, &o->healthy_waits[i]);
	for (const struct outcome *n = o->notices; n; n = n->also)
		print_alert(s, n);
	if (!cw_outcome_says(o))
		printf("%s:%u %s: silence\n", s->file, s->line, s->name);
	for (; o && cw_outcome_says(o); o = o->also)
		print_alert(s, o);
}

static void print_log(void *user, int64_t ns, const char *node, const char *text)
{
	(void)user;
	fprintf(stderr, "  %.2f s, %s: %s\n", (double)ns / CW_NS_PER_S, node, text);
}

/* The advice that a report on it gives. */
static json_t *advice_doc(const json_t *doc)
{
	json_t *list = json_array();
	struct cw_incident_facts incident;
	struct cw_arena arena = { 0 };
	struct advice advice = { 0 };

	if (cw_incident_facts_read(doc, &arena, &incident, NULL, NULL) == 0)
		cw_advice(&incident, &advice);
	cw_arena_fini(&arena);
	for (unsigned i = 0; list && i < advice.n; i++)
		(void)json_array_append_new(list, json_string(advice.steps[i].text));
	return list;
}

/* Prints one line, for a reader in another process. */
static void print_incident(void *user, const struct suite_scenario *s, const json_t *doc,
			   const json_t *truth)
{
	json_t *line = json_pack("{s:s, s:i, s:s, s:O, s:o, s:O}", "file", s->file, "line",
				 (int)s->line, "name", s->name, "incident", doc, "advice",
				 advice_doc(doc), "truth", truth);

	(void)user;
	if (line)
		(void)json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

/* Runs the scenario, or takes its outcome from the worker that ran it. */
static int obtain(struct run *run, const struct suite_scenario *s, struct outcome *ret)
{
	const struct watch_observer observer = {
		.user = run,
		.on_incident = run->opts->incidents ? print_incident : NULL,
		.on_log = run->opts->trace ? print_log : NULL,
	};

	if (run->workers.n && !suite_workers_is_one(&run->workers))
		return suite_workers_get(&run->workers, &run->err, ret);
	return cw_watch_with(s, &observer, &run->err, ret);
}

static int on_scenario(void *user, const struct suite_scenario *s)
{
	struct run *run = user;
	struct suite_scenario scaled = *s;
	struct outcome o = { 0 };
	int r;

	if (run->opts->only && !strstr(s->name, run->opts->only))
		return 0;
	if (run->opts->completion >= 0)
		scaled.completion = (uint8_t)run->opts->completion;
	scaled.has_no_notices |= run->opts->no_notices;
	if (!cw_suite_scenario_scale(&scaled, run->opts->scale)) {
		run->n_unscaled++;
		return 0;
	}
	if (!suite_workers_take(&run->workers))
		return 0;
	r = obtain(run, &scaled, &o);
	if (suite_workers_is_one(&run->workers)) {
		r = suite_workers_put(&run->workers, r, &run->err, &o);
		cw_outcome_fini(&o);
		return r;
	}
	if (r == -EINVAL && run->opts->scale > 1) {
		/*
		 * At this size its comms cannot be partitioned, or its groups have too many calls.
		 */
		run->n_unscaled++;
		return 0;
	}
	if (r < 0)
		return r;
	if (run->opts->verbose)
		print_trace(&scaled, &o);
	if (run->opts->outcomes)
		print_outcome(&scaled, &o);
	cw_score_add(&run->score, &scaled, &o);
	cw_outcome_fini(&o);
	print_progress(run);
	return 0;
}

/* ---- the document ---- */

static json_t *share(uint64_t k, uint64_t n)
{
	return n ? json_real((double)k / (double)n) : json_null();
}

static json_t *interval(uint64_t k, uint64_t n)
{
	double low, high;

	cw_score_interval(k, n, &low, &high);
	return json_pack("[f, f]", low, high);
}

/* null if there are no times. */
static json_t *seconds_at(struct score_times *t, unsigned percent)
{
	return t->n ? json_real((double)cw_score_times_at(t, percent) / CW_NS_PER_S) : json_null();
}

static json_t *classes_doc(struct score *score)
{
	json_t *doc = json_object();

	for (unsigned k = 1; k < SCORE_LABELS; k++) {
		struct score_class *c = &score->classes[k];

		if (!c->expected && !c->given)
			continue;
		json_object_set_new(
			doc, cw_class_name(k),
			json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o, s:o}}",
				  "precision", share(c->given_rightly, c->given), "recall",
				  share(c->right, c->expected), "n", (json_int_t)c->expected,
				  "right", (json_int_t)c->right, "given", (json_int_t)c->given,
				  "given_rightly", (json_int_t)c->given_rightly, "precision_95",
				  interval(c->given_rightly, c->given), "recall_95",
				  interval(c->right, c->expected), "page_s", "median",
				  seconds_at(&c->pages, 50), "p95", seconds_at(&c->pages, 95),
				  "longest", seconds_at(&c->pages, 100)));
	}
	return doc;
}

static json_t *misses_doc(const struct score *score)
{
	json_t *doc = json_array();

	for (size_t i = 0; i < score->n_misses; i++)
		json_array_append_new(doc, json_pack("{s:s, s:s, s:s}", "scenario",
						     score->misses[i].scenario, "where",
						     score->misses[i].where, "reason",
						     score->misses[i].reason));
	return doc;
}

/* A row for each class, expected or not. */
static json_t *confusion_doc(const struct score *score)
{
	json_t *doc = json_object();

	for (unsigned i = 0; i < SCORE_LABELS; i++) {
		json_t *row = json_object();

		for (unsigned k = 0; k < SCORE_LABELS; k++)
			if (score->confusion[i][k])
				json_object_set_new(
					row, cw_class_name(k),
					json_integer((json_int_t)score->confusion[i][k]));
		json_object_set_new(doc, cw_class_name(i), row);
	}
	return doc;
}

static json_t *waits_by_length(const struct waits_count *counts)
{
	struct waits_count sum = cw_waits_sum(counts);
	json_t *by = json_array();

	for (unsigned i = 0; i < WAITS_LENGTHS; i++)
		if (counts[i].n)
			json_array_append_new(
				by, json_pack("{s:f, s:I, s:I, s:I, s:I}", "from_s",
					      (double)cw_waits_length_ns(i) / CW_NS_PER_S, "n",
					      (json_int_t)counts[i].n, "paged",
					      (json_int_t)counts[i].n_paged, "false_pages",
					      (json_int_t)counts[i].false_pages, "notices",
					      (json_int_t)counts[i].notices));
	return json_pack("{s:I, s:I, s:I, s:o}", "n", (json_int_t)sum.n, "false_pages",
			 (json_int_t)sum.false_pages, "more_than_one_notice",
			 (json_int_t)sum.n_often_noticed, "by_length", by);
}

static json_t *waits_doc(const struct score *score)
{
	const struct waits *w = &score->healthy_waits;

	return json_pack("{s:o, s:o, s:o}", "timeout_to_1h", waits_by_length(w->known),
			 "timeout_longer", waits_by_length(w->longer), "no_timeout",
			 waits_by_length(w->none));
}

static json_t *cluster_doc(const struct score *score)
{
	json_t *doc = json_array();

	for (unsigned k = 0; doc && k < SCORE_CLUSTER__MAX; k++) {
		const struct score_cluster *c = &score->cluster[k];

		if (c->n)
			json_array_append_new(
				doc,
				json_pack("{s:s, s:I, s:I, s:I}", "fault", cw_score_cluster_name(k),
					  "n", (json_int_t)c->n, "missed", (json_int_t)c->n_missed,
					  "false_alerts", (json_int_t)c->n_false_alerts));
	}
	return doc;
}

static json_t *proofs_doc(const struct score_proofs *p)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:{s:I, s:I}}", "n", (json_int_t)p->n,
			 "proven_within_5s", (json_int_t)p->n_soon, "right", (json_int_t)p->n_right,
			 "certain", (json_int_t)p->n_certain, "wrong_data", "n",
			 (json_int_t)p->n_wrong_data, "paged_within_5s",
			 (json_int_t)p->n_wrong_data_soon);
}

static int print_json(struct score *score)
{
	json_t *doc = json_pack(
		"{s:s, s:o, s:o, s:{s:I, s:I}, s:{s:I, s:I}, s:{s:I, s:I}, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:i, "
		"s:o}",
		"pipeline", "leader", "classes", classes_doc(score), "exact_culprits",
		share(score->n_exact_culprits, score->n_culprits), "certain", "n",
		(json_int_t)score->n_certain, "wrong", (json_int_t)score->n_certain_wrong, "proven",
		"n", (json_int_t)score->n_proven, "wrong", (json_int_t)score->n_proven_wrong,
		"controls", "n", (json_int_t)score->n_controls, "alerts",
		(json_int_t)score->n_control_alerts, "false_alerts",
		(json_int_t)score->n_false_alerts, "pages", (json_int_t)score->n_pages, "notices",
		(json_int_t)score->n_notices, "false_pages", (json_int_t)score->n_false_alerts,
		"went_on", (json_int_t)score->n_went_on, "healthy_waits",
		(json_int_t)cw_waits_total(&score->healthy_waits).n, "n", (json_int_t)score->n,
		"missed", (json_int_t)score->n_missed, "confusion", confusion_doc(score),
		"uncovered", (int)cw_score_n_uncovered(score), "misses", misses_doc(score));
	int r;

	if (!doc || json_object_set_new(doc, "waits", waits_doc(score)) < 0 ||
	    json_object_set_new(doc, "cluster", cluster_doc(score)) < 0 ||
	    json_object_set_new(doc, "proofs", proofs_doc(&score->proofs)) < 0 ||
	    json_object_set_new(doc, "second_alerts", json_integer((json_int_t)score->n_second)) <
		    0 ||
	    json_object_set_new(doc, "hanging_waits",
				json_pack("{s:I, s:I}", "n", (json_int_t)score->n_hanging_waits,
					  "drawn_as_healthy", (json_int_t)score->n_usual_waits)) <
		    0 ||
	    json_object_set_new(doc, "postmortems",
				json_pack("{s:I, s:I}", "n", (json_int_t)score->n_postmortems,
					  "right", (json_int_t)score->n_right_postmortems)) < 0) {
		json_decref(doc);
		return -ENOMEM;
	}
	r = json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	json_decref(doc);
	putchar('\n');
	return r < 0 ? -EIO : 0;
}

static int print_drawn(const struct options *opts)
{
	char text[SUITE_DRAWN_BYTES];
	uint32_t n_waits;
	size_t n = opts->waits ? cw_suite_draw_waits(opts->seed, opts->print_index, text, &n_waits)
			       : cw_suite_draw(opts->seed, opts->print_index, text);

	return fwrite(text, 1, n, stdout) == n ? CW_EXIT_OK : CW_EXIT_ERROR;
}

struct count {
	const char *only;
	uint64_t n;
};

static int count_one(void *user, const struct suite_scenario *s)
{
	struct count *count = user;

	count->n += !count->only || strstr(s->name, count->only);
	return 0;
}

/* Number of scenarios; 0 = unknown. Errors in files appear when we run them. */
static uint64_t count_all(const struct options *opts)
{
	struct count count = { .only = opts->only };
	struct cw_err err;

	if (opts->waits || (opts->generate && opts->only))
		return 0; /* we draw scenarios until there are enough */
	if (opts->path && cw_suite_read_path(opts->path, count_one, &count, &err) < 0)
		return 0;
	return count.n + opts->generate;
}

int cw_verb_suite(int argc, char **argv)
{
	struct options opts = { .completion = -1, .scale = 1, .seed = 1 };
	struct run run = { .opts = &opts };
	int r, status;

	(void)cw_options_parse(&cw_argp_suite, argc, argv, 0, &opts);
	if (opts.print)
		return print_drawn(&opts);
	cw_log_set_level(CW_LOG_ERR); /* the tables show what leaders log */
	cw_progress_bar_begin(&run.bar, "scenarios", 0, opts.json || opts.verbose);
	if (run.bar.is_on)
		run.bar.total = count_all(&opts);
	r = opts.jobs > 1 ? suite_workers_start(&run.workers, opts.jobs) : 0;
	if (r == 0 && opts.path)
		r = cw_suite_read_path(opts.path, on_scenario, &run, &run.err);
	if (r == 0)
		r = cw_suite_generate(opts.generate, opts.seed, on_scenario, &run, &run.err);
	if (r == 0)
		r = cw_suite_generate_waits(opts.waits, opts.seed, on_scenario, &run, &run.err);
	suite_workers_end(&run.workers);
	cw_progress_bar_end(&run.bar);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", run.err.text[0] ? run.err.text : strerror(-r));
		cw_score_fini(&run.score);
		return CW_EXIT_ERROR;
	}
	if (run.n_unscaled)
		fprintf(stderr,
			"collwatch: %" PRIu64 " scenarios cannot be larger and were left out\n",
			run.n_unscaled);
	if (opts.json)
		r = print_json(&run.score);
	else if (!opts.outcomes && !opts.incidents)
		cw_score_print(&run.score, stdout);
	if (opts.coverage)
		cw_score_print_coverage(&run.score, opts.json ? stderr : stdout);
	status = cw_score_is_perfect(&run.score) ? CW_EXIT_OK : CW_EXIT_HANG;
	if (r < 0 || (opts.coverage && cw_score_n_uncovered(&run.score)))
		status = CW_EXIT_ERROR;
	cw_score_fini(&run.score);
	return status;
}
