/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/control.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/verbs/render_status.h"
#include "common/clock.h"
#include "common/or_exit/or_exit.h"
#include "common/parse.h"
#include "report/text.h"

/* The daemon waits 5 s for the other nodes of the job. */
#define TIMEOUT_MS 10000

enum { OPT_FOR = 256, OPT_UNMUTE, OPT_UID };

struct mute_args {
	struct cw_ask_options ask;
	const char *job;
	int64_t for_ns; /* 0 = no end */
	uint64_t uid;
	bool unmute, has_uid;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct mute_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
		return 0;
	case OPT_FOR:
		if (cw_parse_duration_ns(arg, &args->for_ns) < 0 || args->for_ns <= 0)
			argp_error(state, "--for: \"%s\" is not a duration like 90s, 30min or 2h",
				   arg);
		return 0;
	case OPT_UNMUTE:
		args->unmute = true;
		return 0;
	case OPT_UID:
		if (cw_parse_u64(arg, 0, UINT32_MAX, &args->uid) < 0)
			argp_error(state, "--uid: \"%s\" is not a user's number", arg);
		args->has_uid = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->job)
			argp_error(state, "give one job only");
		args->job = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no job given; `collwatch status` shows the names of jobs");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_mute = {
	.options =
		(const struct argp_option[]){
			{ "for", OPT_FOR, "DURATION", 0, "Duration of the mute: 90s, 30min, 2h, 7d",
			  0 },
			{ "unmute", OPT_UNMUTE, NULL, 0, "Send alerts about the job again", 0 },
			{ "uid", OPT_UID, "UID", 0,
			  "The user of the job, if several users have a job of that name", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_ask_children,
	.args_doc = "JOB",
	.doc = "Send no alerts about a job, for a while or until --unmute.\vJOB is a name that "
	       "`collwatch status` shows, or the part of the name after the colon. The daemon "
	       "still finds hangs and writes their bundles, but does not post them, not even after "
	       "the mute. Run this command on any node of the job: all reachable nodes of the job "
	       "store the mute. The job's owner, root and the members of the control group may "
	       "mute a job. Exit status: 0 done, 1 error, 3 no such job.",
};

static json_t *request_of(const struct mute_args *args)
{
	json_t *request =
		cw_or_exit(json_pack("{s:s, s:b}", "job", args->job, "unmute", args->unmute));

	if (args->for_ns)
		(void)json_object_set_new(request, "for_s",
					  json_real((double)args->for_ns / CW_NS_PER_S));
	if (args->has_uid)
		(void)json_object_set_new(request, "uid", json_integer((json_int_t)args->uid));
	return request;
}

int cw_verb_mute(int argc, char **argv)
{
	struct mute_args args = { 0 };
	json_t *request, *doc = NULL;
	struct cw_err err;
	uint32_t code;
	int r;

	(void)cw_options_parse(&cw_argp_mute, argc, argv, 0, &args);
	request = request_of(&args);
	r = cw_control_ask(cw_control_path(args.ask.control), "mute", request, TIMEOUT_MS, &doc,
			   &code, &err);
	json_decref(request);
	if (r < 0)
		return cw_ask_fail(r, &err);
	if (args.ask.json)
		cw_print_json(doc);
	else
		cw_render_mute(stdout, doc, cw_text_wants_color(stdout));
	json_decref(doc);
	return (int)code;
}
