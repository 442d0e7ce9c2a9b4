/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws hangs of the network, of GPUs and of NCCL's proxies in the model of lab/proxies, and prints
 * how often the verdict is right. The exit status is that decision.
 */
#include <argp.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/exit_status.h"
#include "cli/options.h"
#include "common/parse.h"
#include "lab/cli/verb_lab.h"
#include "lab/proxies/proxy_score.h"

/* Draws with a hang of another cause, and without a hang. */
#define OTHERS 100u
#define HEALTHY 200u

enum { OPT_DRAWS = 256, OPT_SEED };

static const struct argp_option options[] = {
	{ "draws", OPT_DRAWS, "N", 0, "Draws with a fault (default 20000)", 0 },
	{ "seed", OPT_SEED, "N", 0, "The first seed (default 1)", 0 },
	{ 0 },
};

struct args {
	uint64_t draws, seed;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct args *args = state->input;

	switch (key) {
	case OPT_DRAWS:
		if (cw_parse_u64(arg, 0, 100000000, &args->draws) < 0)
			argp_error(state, "--draws %s: not a number of draws", arg);
		return 0;
	case OPT_SEED:
		if (cw_parse_u64(arg, 0, UINT32_MAX, &args->seed) < 0)
			argp_error(state, "--seed %s: not a number", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_proxies = { .options = options,
				      .parser = parse_option,
				      .doc = "Draws faults of the network, of GPUs and of NCCL's "
					     "proxies in a model, and prints how often the verdict "
					     "is right." };

static int add(struct proxy_score *score, uint64_t seed, uint64_t n, enum proxy_fault first,
	       unsigned n_faults)
{
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i++)
		r = proxy_score_add(score, seed + i, first + (enum proxy_fault)(i % n_faults));
	return r;
}

int cw_verb_proxies(int argc, char **argv)
{
	struct args args = { .draws = 20000, .seed = 1 };
	struct proxy_score score = { 0 };
	int r;

	(void)cw_options_parse(&cw_argp_proxies, argc, argv, 0, &args);
	r = add(&score, args.seed, args.draws, PROXY_FAULT_STALL, PROXY_FAULT_NONE);
	if (r == 0)
		r = add(&score, args.seed, HEALTHY, PROXY_FAULT_NONE, 1);
	if (r == 0)
		r = add(&score, args.seed, OTHERS, PROXY_FAULT_STOPPED,
			PROXY_FAULT__MAX - PROXY_FAULT_STOPPED);
	if (r < 0) {
		(void)fprintf(stderr, "collwatch-lab proxies: out of memory\n");
		return CW_EXIT_ERROR;
	}
	return proxy_score_print(&score, stdout) ? CW_EXIT_OK : CW_EXIT_HANG;
}
