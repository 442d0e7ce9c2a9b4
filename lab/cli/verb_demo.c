/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb: completes the options, runs the demo, and decides whether the verdict fits the
 * scenario. The exit status is that decision. It prints the report from the daemon's bundle, not
 * from the demo's own knowledge.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/paths.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/or_exit/or_exit.h"
#include "common/parse.h"
#include "lab/cli/verb_lab.h"
#include "lab/demo/demo.h"
#include "report/json_util.h"
#include "report/text.h"
#include "report/text/render_text.h"

/* A busy machine takes some seconds for 64 ranks; after this time we print the ones so far. */
#define STACKS_WITHIN_S 15

enum {
	OPT_RANKS = 256,
	OPT_NODES,
	OPT_CULPRIT,
	OPT_SECONDS,
	OPT_TIMEOUT,
	OPT_KEEP,
	OPT_JSON,
	OPT_LIST,
	OPT_CHECK,
	OPT_ALL_FRAMES,
	OPT_NO_NAMESPACES,
	OPT_CALL_STACKS,
	OPT_TORCH,
	OPT_REAL_NCCL,
};

static const struct argp_option options[] = {
	{ "ranks", OPT_RANKS, "N", 0, "Ranks of the job, 2 to 64 (default 8)", 0 },
	{ "nodes", OPT_NODES, "N", 0, "Nodes they are spread over (default 2)", 0 },
	{ "no-namespaces", OPT_NO_NAMESPACES, NULL, 0,
	  "Several nodes are daemons on loopback, as where network namespaces are not permitted; "
	  "else each is a namespace",
	  0 },
	{ "call-stacks", OPT_CALL_STACKS, NULL, 0,
	  "Ranks note from where they issue calls (COLLWATCH_CALL_STACKS=on)", 0 },
	{ "culprit", OPT_CULPRIT, "RANK", 0,
	  "The rank that goes wrong (default 3, or the last one of smaller jobs)", 0 },
	{ "seconds", OPT_SECONDS, "S", 0, "healthy: how long to watch (default 20)", 0 },
	{ "timeout", OPT_TIMEOUT, "S", 0, "Patience from the fault to the alert (default 90)", 0 },
	{ "keep", OPT_KEEP, "DIRECTORY", 0, "Keep the incident's bundle in this directory", 0 },
	{ "json", OPT_JSON, NULL, 0,
	  "Print one collwatch.incident/1 or collwatch.healthy/1 and "
	  "nothing else",
	  0 },
	{ "all-frames", OPT_ALL_FRAMES, NULL, 0, "Show interpreter and libc frames too", 0 },
	{ "torch", OPT_TORCH, NULL, 0,
	  "A job of real PyTorch under torchrun instead; from the source tree only, and after "
	  "asking for what it downloads",
	  0 },
	{ "real-nccl", OPT_REAL_NCCL, NULL, 0,
	  "NVIDIA's NCCL on the simulated device (default: 4 ranks on 4 nodes); from the source "
	  "tree only, after \"lab/real-nccl build\"",
	  0 },
	{ "list", OPT_LIST, NULL, 0, "List the scenarios", 0 },
	{ "check", OPT_CHECK, NULL, 0,
	  "Exit 0 when the verdict is the one the scenario must get, else 1", 0 },
	{ 0 },
};

static int number(struct argp_state *state, const char *name, const char *text, int min, int max)
{
	int64_t value;

	if (cw_parse_i64(text, min, max, &value) < 0)
		argp_error(state, "--%s %s: not a number from %d to %d", name, text, min, max);
	return (int)value;
}

/* Checks and completes the options after parsing: defaults that depend on others, and conflicts. */
static void settle(struct argp_state *state, struct demo_options *opts)
{
	if (opts->is_torch && opts->scenario)
		argp_error(state, "--torch has one scenario, its own");
	if (!opts->scenario)
		opts->scenario = demo_scenario_default();
	if (!opts->run.nodes)
		opts->run.nodes = 2;
	if (opts->run.ranks < opts->scenario->min_ranks ||
	    opts->run.nodes < opts->scenario->min_nodes)
		argp_error(state, "%s needs at least %d ranks and %d node%s", opts->scenario->name,
			   opts->scenario->min_ranks,
			   opts->scenario->min_nodes > 1 ? opts->scenario->min_nodes : 1,
			   opts->scenario->min_nodes > 1 ? "s" : "");
	if (opts->run.nodes > opts->run.ranks)
		argp_error(state, "%d nodes cannot share %d ranks", opts->run.nodes,
			   opts->run.ranks);
	if (opts->scenario->is_in_pairs && opts->run.ranks % 2 != 0)
		argp_error(state, "%s needs an even number of ranks", opts->scenario->name);
	if (opts->run.culprit < 0)
		opts->run.culprit = opts->run.ranks > 3 ? 3 : opts->run.ranks - 1;
	if (opts->run.culprit >= opts->run.ranks)
		argp_error(state, "--culprit %d: the ranks are 0 to %d", opts->run.culprit,
			   opts->run.ranks - 1);
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct demo_options *opts = state->input;

	switch (key) {
	case OPT_RANKS:
		opts->run.ranks = number(state, "ranks", arg, 2, DEMO_MAX_RANKS);
		return 0;
	case OPT_NODES:
		opts->run.nodes = number(state, "nodes", arg, 1, DEMO_MAX_RANKS);
		return 0;
	case OPT_CULPRIT:
		opts->run.culprit = number(state, "culprit", arg, 0, DEMO_MAX_RANKS - 1);
		return 0;
	case OPT_SECONDS:
		opts->seconds = number(state, "seconds", arg, 1, 86400);
		return 0;
	case OPT_TIMEOUT:
		opts->timeout_s = number(state, "timeout", arg, 1, 3600);
		return 0;
	case OPT_KEEP:
		opts->keep = arg;
		return 0;
	case OPT_JSON:
		opts->json = true;
		return 0;
	case OPT_ALL_FRAMES:
		opts->all_frames = true;
		return 0;
	case OPT_NO_NAMESPACES:
		opts->no_namespaces = true;
		return 0;
	case OPT_CALL_STACKS:
		opts->has_call_stacks = true;
		return 0;
	case OPT_TORCH:
		opts->is_torch = true;
		return 0;
	case OPT_REAL_NCCL:
		opts->is_real_nccl = true;
		return 0;
	case OPT_CHECK:
		opts->check = true;
		return 0;
	case OPT_LIST:
		demo_scenario_list(stdout);
		exit(CW_EXIT_OK);
	case ARGP_KEY_ARG:
		if (opts->scenario)
			argp_error(state, "one scenario at a time");
		opts->scenario = demo_scenario_find(arg);
		if (!opts->scenario)
			argp_error(state, "there is no scenario \"%s\" (--list shows them)", arg);
		return 0;
	case ARGP_KEY_END:
		settle(state, opts);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const char *cw_demo_value(const char *name, unsigned i)
{
	return strcmp(name, "SCENARIO") == 0 ? demo_scenario_name(i) : NULL;
}

const struct argp cw_argp_demo = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[SCENARIO]",
	.doc = "Run a training job on a simulated device, let it go wrong, and show what collwatch "
	       "says.\v"
	       "Everything is private to the demo and is gone afterwards. Exit status: 0 healthy, "
	       "1 "
	       "error, 2 a hang was found (as it should, but for `healthy`), 3 no verdict in time.",
};

/* Reads the daemon's bundle. The daemon runs on this machine, so its path is valid here. */
static int read_bundle(const struct demo *demo, struct cw_bundle *bundle, struct cw_err *err)
{
	const char *path = demo->bundle;

	if (strncmp(path, demo->dir, strlen(demo->dir)) != 0)
		return cw_err_set(err, ENOENT, "the alert names no bundle of the demo's: \"%s\"",
				  path);
	return cw_bundle_read(path, bundle, err);
}

/* Writes the bundle as DIRECTORY/ID, and sets this path inside it. */
static int keep_bundle(const struct demo *demo, struct cw_bundle *bundle, struct cw_err *err)
{
	const char *id = cw_json_str(bundle->incident, "id", "");
	_cleanup_(freep) char *real = NULL, *path = NULL;
	_cleanup_(closep) int fd = -1;

	if (mkdir(demo->opts.keep, 0750) < 0 && errno != EEXIST)
		return cw_err_set(err, errno, "%s: %s", demo->opts.keep, strerror(errno));
	fd = open(demo->opts.keep, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	real = realpath(demo->opts.keep, NULL);
	if (fd < 0 || !real)
		return cw_err_set(err, errno, "%s: %s", demo->opts.keep, strerror(errno));
	if (asprintf(&path, "%s/%s", real, id) < 0 ||
	    (bundle->incident &&
	     json_object_set_new(bundle->incident, "bundle", cw_json_text(path)) < 0) ||
	    (!demo->opts.scenario->has_postmortem &&
	     json_object_set_new(demo->incident, "bundle", cw_json_text(path)) < 0))
		return cw_err_set(err, ENOMEM, "out of memory");
	return cw_bundle_write(fd, id, bundle, err);
}

/* The stacks of all ranks arrive after the alert, which does not wait for them. */
static bool has_all_stacks(const struct demo *demo)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };

	/* Neither a post-mortem nor a dead rank has any. */
	return demo->opts.scenario->has_postmortem ||
	       (read_bundle(demo, &bundle, NULL) == 0 &&
		cw_json_int(bundle.stacks, "awaited", -1) == 0);
}

/* Without --keep the bundle is deleted with the demo: do not print its path. */
static int show_incident(struct demo *demo)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	struct cw_render_opts opts = {
		.color = cw_text_wants_color(stdout),
		.all_frames = demo->opts.all_frames,
	};
	int r;

	if (demo->opts.keep || !demo->opts.json)
		demo_await(demo, has_all_stacks, STACKS_WITHIN_S);
	r = read_bundle(demo, &bundle, &demo->err);
	if (r == 0 && demo->opts.keep)
		r = keep_bundle(demo, &bundle, &demo->err);
	if (r < 0)
		return r;
	if (demo->opts.json)
		return json_dumpf(demo->incident, stdout,
				  JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0 &&
				       puts("") >= 0
			       ? 0
			       : -EIO;
	if (!demo->opts.keep && bundle.incident &&
	    json_object_set_new(bundle.incident, "bundle", json_null()) < 0)
		return -ENOMEM;
	fputc('\n', stdout);
	r = cw_render_text(stdout, &bundle, &opts);
	return r < 0 ? cw_err_set(&demo->err, -r, "the incident cannot be shown: %s", strerror(-r))
		     : 0;
}

/* True if all ranks have ended in the way that the scenario expects. */
static bool has_ended_well(const struct demo *demo, struct cw_err *err)
{
	for (int i = 0; i < demo->opts.run.ranks; i++)
		if (!demo->ranks[i].proc.has_ended) {
			(void)cw_err_set(err, ETIMEDOUT, "rank %d still runs", i);
			return false;
		}
	return true;
}

/* True if status shows a healthy job: all of it is visible, and nothing is pending for long. */
static bool is_well(const struct demo *demo, const json_t *job, struct cw_err *err)
{
	const char *state = cw_json_str(job, "state", "not known to any daemon");

	if (strcmp(state, "healthy") == 0 && cw_json_int(job, "ranks", 0) == demo->opts.run.ranks)
		return true;
	(void)cw_err_set(err, ENODATA,
			 "the job is %s, %" JSON_INTEGER_FORMAT " of %d ranks seen: %s", state,
			 cw_json_int(job, "ranks", 0), demo->opts.run.ranks,
			 cw_json_str(job, "summary", ""));
	return false;
}

/* NULL, and err explains why the job is not healthy. */
static json_t *healthy_doc(struct demo *demo, struct cw_err *err)
{
	double watched_s =
		(double)((cw_clock_now_ns(&cw_clock_system) - demo->watching_ns) / CW_NS_PER_MS) /
		1000;
	bool has_ended = demo_job_ends(demo);
	json_t *job = has_ended ? NULL : demo->status, *doc = NULL;
	char summary[256];

	if (has_ended ? has_ended_well(demo, err) : is_well(demo, job, err)) {
		snprintf(summary, sizeof(summary),
			 "healthy: %d ranks on %d node%s watched for %.0f s", demo->opts.run.ranks,
			 demo->opts.run.nodes, demo->opts.run.nodes == 1 ? "" : "s", watched_s);
		doc = json_pack("{s:s, s:s, s:i, s:i, s:b, s:f, s:s}", "schema",
				"collwatch.healthy/1", "job", DEMO_JOB, "ranks",
				demo->opts.run.ranks, "nodes", demo->opts.run.nodes, "namespaces",
				demo->net != NULL, "watched_s", watched_s, "summary", summary);
	}
	/* No daemon keeps the numbers of a job that has ended. */
	if (doc && job &&
	    (json_object_set_new(doc, "job", json_string(cw_json_str(job, "job", DEMO_JOB))) < 0 ||
	     json_object_set_new(doc, "comms", json_integer(cw_json_int(job, "comms", 0))) < 0 ||
	     json_object_set_new(doc, "collectives",
				 json_integer(cw_json_int(job, "collectives", 0))) < 0)) {
		(void)cw_err_set(err, ENOMEM, "out of memory");
		json_decref(doc);
		doc = NULL;
	}
	return doc;
}

static void say_verdict(const struct demo *demo, bool is_right)
{
	const struct demo_scenario *s = demo->opts.scenario;

	if (demo->alert_ns && demo->fault_ns)
		demo_say(demo, "%s after %.1f s",
			 s->has_postmortem ? "post-mortem written" : "alert received",
			 (double)(demo->alert_ns - demo->fault_ns) / CW_NS_PER_S);
	if (!s->expected_class)
		demo_say(demo, "%s: nothing was to be reported%s%s", is_right ? "right" : "WRONG",
			 is_right && s->why ? ": " : "", is_right && s->why ? s->why : "");
	else if (s->blame == DEMO_BLAME_LINK)
		demo_say(demo, "%s: it had to be %s/%s, a connection of rank %d",
			 is_right ? "right" : "WRONG", cw_class_name(s->expected_class),
			 cw_detail_name(s->expected_detail), demo->opts.run.culprit);
	else if (s->blame == DEMO_BLAME_NODE)
		demo_say(demo, "%s: it had to be %s, all ranks of %s", is_right ? "right" : "WRONG",
			 cw_class_name(s->expected_class),
			 demo->nodes[demo_case_node(&demo->opts.run, demo->opts.run.culprit)].name);
	else
		demo_say(demo, "%s: it had to be %s%s%s, rank %d", is_right ? "right" : "WRONG",
			 cw_class_name(s->expected_class), s->expected_detail ? "/" : "",
			 cw_detail_name(s->expected_detail), demo->opts.run.culprit);
}

static int conclude_alert(struct demo *demo)
{
	bool is_right =
		demo_scenario_is_right(demo->opts.scenario, demo->incident, &demo->opts.run);

	say_verdict(demo, is_right);
	if (show_incident(demo) < 0) {
		fprintf(stderr, "collwatch: %s\n", demo->err.text);
		return CW_EXIT_ERROR;
	}
	if (demo->opts.check)
		return is_right ? CW_EXIT_OK : CW_EXIT_ERROR;
	return CW_EXIT_HANG;
}

static int conclude_watched(struct demo *demo)
{
	json_t *doc = healthy_doc(demo, &demo->err);

	if (!doc) {
		fprintf(stderr, "collwatch: %s\n", demo->err.text);
		return demo->opts.check ? CW_EXIT_ERROR : CW_EXIT_NO_DATA;
	}
	say_verdict(demo, demo_scenario_is_right(demo->opts.scenario, doc, &demo->opts.run));
	if (demo->opts.json) {
		json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
		putchar('\n');
	} else {
		puts(cw_json_str(doc, "summary", ""));
	}
	json_decref(doc);
	return CW_EXIT_OK;
}

/* Prints the last lines of a log, for the analysis of a failure. */
static void show_tail(const char *path, const char *name)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[2048];
	ssize_t n;

	if (fd < 0)
		return;
	if (lseek(fd, -(off_t)sizeof(buf) + 1, SEEK_END) < 0)
		(void)lseek(fd, 0, SEEK_SET); /* the file is shorter */
	n = read(fd, buf, sizeof(buf) - 1);
	if (n > 0)
		fprintf(stderr, "---- the last of %s:\n%.*s", name, (int)n, buf);
}

static int conclude_failure(struct demo *demo)
{
	char path[PATH_MAX];

	fprintf(stderr, "collwatch: %s\n", demo->err.text);
	for (int i = 0; demo->dir[0] && i < demo->opts.run.nodes; i++) {
		snprintf(path, sizeof(path), "%s/collwatchd.log", demo->nodes[i].dir);
		show_tail(path, demo->nodes[i].name);
	}
	for (int i = 0; demo->dir[0] && i < demo->opts.run.ranks; i++) {
		if (i != demo->opts.run.culprit && !demo->ranks[i].proc.has_ended)
			continue;
		snprintf(path, sizeof(path), "%s/rank-%d.log", demo->dir, i);
		show_tail(path, demo->ranks[i].proc.name);
	}
	if (demo->opts.check || demo->outcome != DEMO_TIMEOUT)
		return CW_EXIT_ERROR;
	return CW_EXIT_NO_DATA;
}

static int conclude(struct demo *demo)
{
	switch (demo->outcome) {
	case DEMO_ALERT:
		return conclude_alert(demo);
	case DEMO_WATCHED:
		return conclude_watched(demo);
	case DEMO_INTERRUPTED:
		demo_say(demo, "interrupted, stopping everything");
		return CW_EXIT_ERROR;
	default:
		return conclude_failure(demo);
	}
}

/*
 * Finds a program of the source tree, and the build directory, which is two levels above our own
 * program (lab/collwatch-lab). Prints an error and returns false if one of them does not exist.
 */
static bool find_source(enum cw_part part, char program[PATH_MAX], char build[PATH_MAX])
{
	struct cw_err err;

	if (cw_paths_find(part, program, &err) < 0 || cw_paths_find(CW_PART_LAB, build, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return false;
	}
	for (int i = 0; i < 2; i++)
		*strrchr(build, '/') = '\0';
	return true;
}

/* Executes the laboratory's program for real PyTorch; returns if that fails. */
static int become_torch(bool check)
{
	char program[PATH_MAX], build[PATH_MAX];

	if (!find_source(CW_PART_TORCH, program, build))
		return CW_EXIT_ERROR;
	(void)execl(program, program, "demo", "--build", build, check ? "--check" : NULL, NULL);
	fprintf(stderr, "collwatch: cannot run %s: %s\n", program, strerror(errno));
	return CW_EXIT_ERROR;
}

/*
 * Executes the laboratory's program for NVIDIA's NCCL with all other options; returns if that
 * fails. argp accepts an option by its first letters, too.
 */
static int become_real_nccl(int argc, char **argv)
{
	char program[PATH_MAX], build[PATH_MAX];
	const char **words = cw_or_exit(calloc((size_t)argc + 5, sizeof(*words)));
	int n = 0;

	if (!find_source(CW_PART_REAL_NCCL, program, build)) {
		free(words);
		return CW_EXIT_ERROR;
	}
	words[n++] = program;
	words[n++] = "demo";
	words[n++] = "--build";
	words[n++] = build;
	words[n++] = "--";
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--re", 4) != 0)
			words[n++] = argv[i];
	(void)execv(program, (char **)words);
	fprintf(stderr, "collwatch: cannot run %s: %s\n", program, strerror(errno));
	free(words);
	return CW_EXIT_ERROR;
}

int cw_verb_demo(int argc, char **argv)
{
	struct demo *demo = cw_or_exit(calloc(1, sizeof(*demo)));
	int status, signo;

	demo->opts = (struct demo_options){
		.run = { .ranks = 8, .culprit = -1 },
		.seconds = 20,
		.timeout_s = 90,
	};
	(void)cw_options_parse(&cw_argp_demo, argc, argv, 0, &demo->opts);
	if (demo->opts.is_torch || demo->opts.is_real_nccl) {
		status = demo->opts.is_torch ? become_torch(demo->opts.check)
					     : become_real_nccl(argc, argv);
		free(demo);
		return status;
	}
	demo_run(demo);
	status = conclude(demo);
	signo = demo->signo;
	demo_stop(demo);
	free(demo);
	if (signo) {
		/* die of the signal, so that a shell's loop stops too */
		(void)fflush(stdout);
		(void)signal(signo, SIG_DFL);
		(void)raise(signo);
	}
	return status;
}
