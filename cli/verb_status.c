/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/control.h"
#include "cli/render_status.h"
#include "cli/verb.h"

#define TIMEOUT_MS 5000

enum { OPT_JSON = 256, OPT_CONTROL };

struct status_args {
	const char *control;
	bool json;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct status_args *args = state->input;

	switch (key) {
	case OPT_JSON:
		args->json = true;
		return 0;
	case OPT_CONTROL:
		args->control = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options =
		(const struct argp_option[]){
			{ "json", OPT_JSON, NULL, 0, "Print the daemon's document as it is", 0 },
			{ "control", OPT_CONTROL, "SOCKET", 0,
			  "Control socket (default: " CW_CONTROL_SOCKET ")", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.doc = "Show the jobs that this node's daemon watches.\v"
	       "Exit status: 0 healthy, 1 no answer, 2 a job hangs, 3 not enough data.",
};

int cw_verb_status(int argc, char **argv)
{
	struct status_args args = { 0 };
	json_t *status = NULL;
	struct cw_err err;
	uint32_t code;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (cw_control_ask(cw_control_path(args.control), "status", NULL, TIMEOUT_MS, &status,
			   &code, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return CW_EXIT_ERROR;
	}
	if (args.json) {
		json_dumpf(status, stdout, JSON_INDENT(1));
		putchar('\n');
	} else {
		cw_render_status(stdout, status, isatty(STDOUT_FILENO));
	}
	json_decref(status);
	return (int)code;
}
