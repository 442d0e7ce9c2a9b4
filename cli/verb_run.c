/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program always runs: a watchdog that keeps a job from starting does more harm than the hang
 * it would have found. What is not there is said in one line.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/asan.h"
#include "cli/paths.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/unixsock.h"

#define AGENT_SOCKET "/run/collwatch/agent.sock"
#define CONNECT_TIMEOUT_MS 500

enum { OPT_SOCKET = 256, OPT_AGENT };

struct run_args {
	const char *socket, *agent;
	char **command;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct run_args *args = state->input;

	switch (key) {
	case OPT_SOCKET:
		args->socket = arg;
		return 0;
	case OPT_AGENT:
		args->agent = arg;
		return 0;
	case ARGP_KEY_ARG:
		/* all that follows is the program's */
		args->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "what shall be run?");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options =
		(const struct argp_option[]){
			{ "socket", OPT_SOCKET, "SOCKET", 0,
			  "The daemon's agent socket (default: " AGENT_SOCKET ")", 0 },
			{ "agent", OPT_AGENT, "FILE", 0,
			  "The agent (default: the one of this installation)", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.args_doc = "[--] PROGRAM [ARGUMENT…]",
	.doc = "Run a program with the agent loaded into it and all its children.\v"
	       "The agent does nothing until the program makes its first NCCL call. The program "
	       "runs "
	       "also when agent or daemon are missing; one line on standard error tells. "
	       "/etc/ld.so.preload is not supported: AddressSanitizer needs to be the first "
	       "library.",
};

/* [libasan:]existing:agent, in fresh memory */
static char *preload_list(const char *agent, const char *program)
{
	const char *existing = getenv("LD_PRELOAD");
	char asan[NAME_MAX], *list;
	int n;

	if (existing && !*existing)
		existing = NULL;
	if (!cw_asan_needed(program, asan, sizeof(asan)) || (existing && strstr(existing, asan)))
		asan[0] = '\0';
	n = asprintf(&list, "%s%s%s%s%s", asan, *asan ? ":" : "", existing ? existing : "",
		     existing ? ":" : "", agent);
	return n < 0 ? NULL : list;
}

/* Fills agent; says why not in err. The loader splits its list at blanks and colons. */
static int find_agent(const struct run_args *args, char agent[PATH_MAX], struct cw_err *err)
{
	if (!args->agent) {
		int r = cw_paths_find(CW_PART_AGENT, agent, err);

		if (r < 0)
			return r;
	} else if (!realpath(args->agent, agent)) {
		return cw_err_set(err, errno, "agent %s: %s", args->agent, strerror(errno));
	}
	if (access(agent, R_OK) < 0)
		return cw_err_set(err, errno, "agent %s: %s", agent, strerror(errno));
	if (strpbrk(agent, " :"))
		return cw_err_set(err, EINVAL,
				  "agent %s: a path with blanks or colons cannot be preloaded",
				  agent);
	return 0;
}

static void say_what_is_there(const char *agent, const char *socket)
{
	_cleanup_(closep) int fd = cw_unix_connect(socket, CONNECT_TIMEOUT_MS);

	if (fd >= 0)
		fprintf(stderr, "collwatch: agent %s loaded, daemon reached\n", agent);
	else
		fprintf(stderr,
			"collwatch: agent %s loaded, no daemon on %s (%s); the agent keeps "
			"looking\n",
			agent, socket, strerror(-fd));
}

int cw_verb_run(int argc, char **argv)
{
	const char *socket = getenv("COLLWATCH_SOCKET");
	struct run_args args = { 0 };
	char agent[PATH_MAX];
	struct cw_err err;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &args);
	if (args.socket && setenv("COLLWATCH_SOCKET", args.socket, 1) == 0)
		socket = args.socket;
	if (!socket || !*socket)
		socket = AGENT_SOCKET;
	if (find_agent(&args, agent, &err) < 0) {
		fprintf(stderr, "collwatch: %s; running without\n", err.text);
	} else {
		_cleanup_(freep) char *list = preload_list(agent, args.command[0]);

		if (!list || setenv("LD_PRELOAD", list, 1) < 0) {
			fputs("collwatch: out of memory; running without agent\n", stderr);
		} else {
			say_what_is_there(agent, socket);
		}
	}
	execvp(args.command[0], args.command);
	fprintf(stderr, "collwatch: cannot run %s: %s\n", args.command[0], strerror(errno));
	return CW_EXIT_ERROR;
}
