/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb: executes tests/compare/run of the source tree, which makes real PyTorch jobs hang under
 * collwatch and under other tools, and writes the page.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/paths.h"
#include "cli/verb.h"
#include "lab/cli/verb_lab.h"

#define WORDS_MAX 64

struct options {
	char *words[WORDS_MAX]; /* arguments of the program to execute; the last one stays NULL */
	unsigned n_words;
};

enum {
	OPT_JSON = 256,
	OPT_PAGE,
	OPT_KEEP,
	OPT_JOBS,
	OPT_ONLY_CASES,
};

static const struct argp_option options[] = {
	{ "json", OPT_JSON, NULL, 0, "Print the numbers instead of the page", 0 },
	{ "page", OPT_PAGE, "FILE", 0, "Write the page there, too", 0 },
	{ "keep", OPT_KEEP, "DIRECTORY", 0, "Keep what each tool printed in this directory", 0 },
	{ "jobs", OPT_JOBS, "N", 0, "Hangs at a time (default 1)", 0 },
	{ "only-cases", OPT_ONLY_CASES, NULL, 0, "Neither healthy jobs nor costs", 0 },
	{ 0 },
};

static void add(struct argp_state *state, char *word)
{
	struct options *opts = state->input;

	if (opts->n_words == WORDS_MAX - 1)
		argp_error(state, "more than %d words", WORDS_MAX - 1);
	opts->words[opts->n_words++] = word;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	static char json[] = "--json", page[] = "--page", keep[] = "--keep", jobs[] = "--jobs",
		    only_cases[] = "--only-cases";

	switch (key) {
	case OPT_JSON:
		add(state, json);
		return 0;
	case OPT_ONLY_CASES:
		add(state, only_cases);
		return 0;
	case OPT_PAGE:
	case OPT_KEEP:
	case OPT_JOBS:
		add(state, key == OPT_PAGE ? page : key == OPT_KEEP ? keep : jobs);
		add(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		add(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_compare = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[CASE...]",
	.doc = "Let jobs of real PyTorch hang, and say what collwatch, PyTorch's own tools, NCCL's "
	       "RAS and py-spy make of it.\v"
	       "Works from the source tree only; fetches PyTorch unless it is there. All of it "
	       "takes half an hour. Exit status: 0 when all was compared, 1 else.",
};

int cw_verb_compare(int argc, char **argv)
{
	static char build_option[] = "--build";
	char program[PATH_MAX], build[PATH_MAX];
	struct options opts = { .words = { program, build_option, build }, .n_words = 3 };
	struct cw_err err;

	(void)cw_options_parse(&cw_argp_compare, argc, argv, 0, &opts);
	if (cw_paths_find(CW_PART_COMPARE, program, &err) < 0 ||
	    cw_paths_find(CW_PART_LAB, build, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return CW_EXIT_ERROR;
	}
	/* The build directory is two levels up: lab/collwatch-lab. */
	for (int i = 0; i < 2; i++)
		*strrchr(build, '/') = '\0';
	(void)execv(program, opts.words);
	fprintf(stderr, "collwatch: cannot run %s: %s\n", program, strerror(errno));
	return CW_EXIT_ERROR;
}
