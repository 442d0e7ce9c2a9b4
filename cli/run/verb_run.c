/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If agent or daemon are missing, we still run the program and print one line about it. A watchdog
 * that keeps a job from starting does more harm than a hang. But if options or environment have a
 * mistake, we refuse, because the user is present and can fix it.
 *
 * Without --standalone and --tag-output this process becomes the program. With one of them it runs
 * the program as its child (run_child.c).
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/run/run_agent.h"
#include "cli/run/run_child.h"
#include "cli/run/run_environment.h"
#include "cli/run/run_peers.h"
#include "cli/run/run_standalone.h"
#include "cli/run/run_watch.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/unixsock.h"

#define AGENT_SOCKET "/run/collwatch/agent.sock"
#define CONNECT_TIMEOUT_MS 500

enum {
	OPT_SOCKET = 256,
	OPT_AGENT,
	OPT_STANDALONE,
	OPT_SET,
	OPT_PEERS,
	OPT_HTML,
	OPT_OPEN,
	OPT_TAG,
	OPT_STOP_AT
};

struct run_args {
	const char *socket, *agent, *peers, *stop_at;
	bool standalone, tag;
	struct run_standalone_options own;
	char **command;
};

static void add_setting(struct run_args *args, const char *arg, struct argp_state *state)
{
	struct cw_err err = { "" };

	if (run_setting_check(arg, &err) < 0)
		argp_error(state, "--set: %s", err.text);
	if (args->own.n_settings == RUN_MAX_SETTINGS)
		argp_error(state, "--set: more than %u", RUN_MAX_SETTINGS);
	args->own.settings[args->own.n_settings++] = arg;
}

/* Rejects options that have no meaning without a private daemon (--standalone). */
static void check_all(const struct run_args *args, struct argp_state *state)
{
	if (!args->command)
		argp_error(state, "no program given");
	if (!args->standalone && (args->own.n_settings || args->own.has_pages || args->own.opens))
		argp_error(state, "--set, --html and --open need --standalone");
}

static const char *stop_at_of(const char *arg, struct argp_state *state)
{
	static const char *const known[] = { "nonfinite", "headroom", "nonfinite,headroom",
					     "headroom,nonfinite" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(arg, known[i]) == 0)
			return arg;
	argp_error(state, "--stop-at: give nonfinite, headroom, or both, separated by a comma");
	return NULL;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct run_args *args = state->input;

	switch (key) {
	case OPT_SOCKET:
		args->socket = arg;
		return 0;
	case OPT_STANDALONE:
		args->standalone = true;
		return 0;
	case OPT_SET:
		add_setting(args, arg, state);
		return 0;
	case OPT_PEERS:
		args->peers = arg;
		return 0;
	case OPT_HTML:
		args->own.has_pages = true;
		return 0;
	case OPT_OPEN:
		args->own.opens = true;
		return 0;
	case OPT_TAG:
		args->tag = true;
		return 0;
	case OPT_STOP_AT:
		args->stop_at = stop_at_of(arg, state);
		return 0;
	case OPT_AGENT:
		args->agent = arg;
		return 0;
	case ARGP_KEY_ARG:
		/* the other words belong to the program */
		args->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check_all(args, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_run = {
	.options =
		(const struct argp_option[]){
			{ "socket", OPT_SOCKET, "SOCKET", 0,
			  "The daemon's agent socket (default: " AGENT_SOCKET ")", 0 },
			{ "agent", OPT_AGENT, "FILE", 0,
			  "The agent (default: the one of this installation)", 0 },
			{ "standalone", OPT_STANDALONE, NULL, 0,
			  "Start a daemon for this program only; needs no root", 0 },
			{ "set", OPT_SET, "KEY=VALUE", 0,
			  "A line of that daemon's configuration, for example "
			  "no_progress_after=10min (see collwatchd.conf(5)); may be repeated",
			  0 },
			{ "peers", OPT_PEERS, "LIST[:PORT]", 0,
			  "Hosts on which this job has such daemons: gpu[1-4], or "
			  "NAME=ADDRESS:PORT, separated by commas. A new key is passed on in the "
			  "program's environment",
			  0 },
			{ "html", OPT_HTML, NULL, 0,
			  "With --standalone: at the end, also write an HTML page of each hang",
			  0 },
			{ "open", OPT_OPEN, NULL, 0,
			  "Like --html, and open the first page (xdg-open)", 0 },
			{ "stop-at", OPT_STOP_AT, "WHAT", 0,
			  "Stop a rank (SIGSTOP) whose tensors have NaN or Inf (nonfinite) or come "
			  "near the limit of their type (headroom); turns tensor summaries on",
			  0 },
			{ "tag-output", OPT_TAG, NULL, 0,
			  "Prefix each line of output with host:rank", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.args_doc = "[--] PROGRAM [ARGUMENT…]",
	.doc = "Run a program, and load the agent into it and all its children.\vThe agent does "
	       "nothing until the program makes its first NCCL call. If agent or daemon are "
	       "missing, the program runs all the same, and a line on standard error says so. "
	       "/etc/ld.so.preload is not supported: AddressSanitizer needs to be the first "
	       "library. Exit status: that of the program; 1 usage error, 126 the program cannot "
	       "be executed, 127 the program is not found.",
};

static void say_what_is_there(const char *agent, const char *socket)
{
	_cleanup_(closep) int fd = -1;

	if (run_environment_is_disabled()) {
		fputs("collwatch: COLLWATCH or COLLWATCH_DISABLE turns the agent off, so the agent "
		      "does nothing and no rank is watched\n",
		      stderr);
		return;
	}
	fd = cw_unix_connect(socket, CONNECT_TIMEOUT_MS);

	if (fd >= 0)
		fprintf(stderr, "collwatch: agent %s loaded, daemon reached\n", agent);
	else
		fprintf(stderr,
			"collwatch: agent %s loaded, no daemon on %s (%s); the agent keeps trying "
			"to connect\n",
			agent, socket, strerror(-fd));
}

/* Makes "host:3| ", or "host| " if the program is a launcher that starts the ranks itself. */
static void make_prefix(char *buf, size_t len)
{
	static const char *const names[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					     "PMIX_RANK" };
	const char *rank = NULL;
	char host[HOST_NAME_MAX + 1] = "?";

	(void)gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	for (size_t i = 0; !rank && i < sizeof(names) / sizeof(names[0]); i++)
		rank = getenv(names[i]);
	if (rank && *rank)
		(void)snprintf(buf, len, "%s:%.20s| ", host, rank);
	else
		(void)snprintf(buf, len, "%s| ", host);
}

/* The parts that we serve while the program runs as our child. */
struct beside {
	struct run_standalone *own; /* private daemon; NULL = none */
	struct run_watch *watch;
};

static void on_second(void *user)
{
	const struct beside *beside = user;

	run_watch_read(beside->watch);
	if (beside->own)
		run_standalone_print(beside->own);
}

static int stay_beside(const struct run_args *args, struct run_standalone *own,
		       struct run_watch *watch)
{
	char prefix[HOST_NAME_MAX + 32];
	struct beside beside = { own, watch };
	struct run_child child = {
		.command = args->command,
		.on_second = on_second,
		.user = &beside,
	};
	int status;

	make_prefix(prefix, sizeof(prefix));
	if (args->tag)
		child.prefix = prefix;
	status = cw_run_child(&child);
	if (own)
		run_standalone_stop(own);
	if (status >= 0) {
		run_watch_say(watch);
		run_end_like(status);
	}
	fprintf(stderr, "collwatch: cannot run %s: %s\n", args->command[0], strerror(-status));
	return CW_EXIT_ERROR;
}

/*
 * Ends this process without starting the program. The user made a mistake, so the program would run
 * unwatched.
 */
__attribute__((noreturn)) static void refuse(const char *what, const struct cw_err *err)
{
	fprintf(stderr, "collwatch run: %s%s; the program was not started\n", what, err->text);
	exit(CW_EXIT_ERROR);
}

/* Starts a private daemon. Returns false if that failed; the program then runs without one. */
static bool start_own_daemon(struct run_standalone *own, const struct run_args *args)
{
	char path[PATH_MAX + 16];
	struct cw_err err;
	int r = run_standalone_start(own, &args->own, &err);

	if (r == -EINVAL)
		refuse("", &err);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s; running without\n", err.text);
		if (own->daemon > 0)
			run_standalone_stop(own);
		return false;
	}
	(void)snprintf(path, sizeof(path), "%s/agent.sock", own->dir);
	(void)setenv("COLLWATCH_SOCKET", path, 1);
	(void)snprintf(path, sizeof(path), "%s/control.sock", own->dir);
	(void)setenv("COLLWATCH_CONTROL_SOCKET", path, 1);
	return true;
}

/* Puts the agent into the environment of the program. Returns true if the program will load it. */
static bool load_agent(const struct run_args *args, const char *socket)
{
	char agent[PATH_MAX];
	struct cw_err err = { "" };
	int r = cw_run_agent_load(args->agent, args->command[0], agent, &err);

	if (r < 0)
		fprintf(stderr, "collwatch: %s; running without\n", err.text);
	else if (r == RUN_AGENT_STATIC)
		fprintf(stderr, "collwatch: %s\n", err.text);
	else
		say_what_is_there(agent, socket);
	return r == 0 && !run_environment_is_disabled();
}

/* Replaces this process by the program. */
static int execute(const struct run_args *args, struct run_watch *watch)
{
	int failed = run_watch_stay_behind(watch), error;

	execvp(args->command[0], args->command);
	error = errno;
	if (failed >= 0)
		(void)write(failed, "", 1); /* harmless if no process stayed behind */
	fprintf(stderr, "collwatch: cannot run %s: %s\n", args->command[0], strerror(error));
	return cw_exit_of_exec(error);
}

int cw_verb_run(int argc, char **argv)
{
	struct run_standalone own = { 0 };
	struct run_watch watch = { .fd = -1, .program = -1 };
	struct run_args args = { 0 };
	const char *socket;
	struct cw_err err;
	bool has_own;

	(void)cw_options_parse(&cw_argp_run, argc, argv, ARGP_IN_ORDER, &args);
	if (args.socket)
		(void)setenv("COLLWATCH_SOCKET", args.socket, 1); /* if NULL: the default */
	if (run_environment_check(&err) < 0)
		refuse("", &err);
	if (args.peers && run_peers_hand_on(args.peers, &err) < 0)
		refuse("--peers: ", &err);
	if (args.stop_at) {
		(void)setenv("COLLWATCH_STOP_AT", args.stop_at, 1);
		(void)setenv("COLLWATCH_SUMMARY", "full", 0);
	}
	has_own = args.standalone && start_own_daemon(&own, &args);
	socket = getenv("COLLWATCH_SOCKET");
	/*
	 * With --peers alone, the program is a launcher. The `run` on each of its nodes prints the
	 * line.
	 */
	if (load_agent(&args, socket && *socket ? socket : AGENT_SOCKET) &&
	    (!args.peers || args.standalone))
		run_watch_open(&watch);
	if (has_own || args.tag)
		return stay_beside(&args, has_own ? &own : NULL, &watch);
	return execute(&args, &watch);
}
