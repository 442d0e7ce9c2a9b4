/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/ask_options.h"
#include "cli/control.h"
#include "cli/doctor/doctor.h"
#include "cli/options.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"
#include "common/parse.h"
#include "report/json_util.h"
#include "report/text.h"

enum { OPT_SOCKET = 256, OPT_CONFIG, OPT_PID };

struct doctor_args {
	struct cw_ask_options ask;
	const char *socket, *config, *program;
	uint64_t pid; /* 0 = none */
	bool no_pager;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct doctor_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
		state->child_inputs[1] = &args->no_pager;
		return 0;
	case OPT_SOCKET:
		args->socket = arg;
		return 0;
	case OPT_CONFIG:
		args->config = arg;
		return 0;
	case OPT_PID:
		if (cw_parse_u64(arg, 1, INT32_MAX, &args->pid) < 0)
			argp_error(state, "--pid: \"%s\" is not a process", arg);
		return 0;
	case ARGP_KEY_ARG:
		args->program = arg;
		state->next = state->argc; /* the other words are arguments of the program */
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_doctor = {
	.options =
		(const struct argp_option[]){
			{ "pid", OPT_PID, "PID", 0,
			  "Check whether this process has loaded the agent", 0 },
			{ "socket", OPT_SOCKET, "SOCKET", 0,
			  "Agent socket (default: " DOCTOR_AGENT_SOCKET ")", 0 },
			{ "config", OPT_CONFIG, "FILE", 0,
			  "The daemon's configuration, if it is not the default file", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_ask_paged_children,
	.args_doc = "[--] [PROGRAM [ARGUMENT…]]",
	.doc = "Find out why collwatch sees nothing, or less than it could, on this node.\vWith "
	       "PROGRAM, check also whether the agent can be loaded into it, without running it. "
	       "Each finding has a name, a description of the problem and, if possible, a command "
	       "that solves it. Exit status: 0 no problem found, 1 the check failed, 2 problems "
	       "found.",
};

void doctor_find(struct doctor *d, const char *name, const char *fix, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)json_array_append_new(d->findings,
				    json_pack("{s:s, s:o, s:o}", "name", name, "what",
					      cw_json_text(text), "fix", cw_json_text(fix)));
}

void doctor_note(struct doctor *d, const char *text)
{
	(void)json_array_append_new(d->notes, cw_json_text(text));
}

void doctor_checked(struct doctor *d, const char *name)
{
	(void)json_array_append_new(d->checked, json_string(name));
}

static void show(const struct doctor_args *args, const struct doctor *d)
{
	struct cw_text t = { .out = stdout, .color = cw_text_wants_color(stdout), .width = 100 };
	size_t i, n = json_array_size(d->findings);
	const json_t *finding;

	cw_pager_open(args->no_pager);
	json_array_foreach (d->findings, i, finding) {
		const char *fix = cw_json_str(finding, "fix", NULL);

		cw_text_put(&t, CW_TEXT_RED, cw_json_str(finding, "name", "?"));
		fputs("\n    ", stdout);
		cw_text_wrap(&t, 4, 4, cw_json_str(finding, "what", ""));
		if (fix) {
			fputs("    fix: ", stdout);
			cw_text_put(&t, CW_TEXT_BOLD, fix);
			putchar('\n');
		}
	}
	json_array_foreach (d->notes, i, finding) {
		fputs("note: ", stdout);
		cw_text_wrap(&t, 6, 6, json_string_value(finding));
	}
	if (n)
		printf("%zu problem%s found in ", n, n == 1 ? "" : "s");
	else
		printf("no problem found in ");
	n = json_array_size(d->checked);
	printf("%zu check%s\n", n, n == 1 ? "" : "s");
}

int cw_verb_doctor(int argc, char **argv)
{
	struct doctor_args args = { 0 };
	struct doctor d = { .findings = json_array(),
			    .notes = json_array(),
			    .checked = json_array() };
	const char *socket = getenv("COLLWATCH_SOCKET");
	json_t *doc;
	int status;

	(void)cw_options_parse(&cw_argp_doctor, argc, argv, ARGP_IN_ORDER, &args);
	if (!d.findings || !d.notes || !d.checked)
		return CW_EXIT_ERROR;
	d.control = cw_control_path(args.ask.control);
	d.agent_socket = args.socket         ? args.socket
			 : socket && *socket ? socket
					     : DOCTOR_AGENT_SOCKET;
	d.config = args.config;
	if (!doctor_check_workstation(&d)) {
		doctor_check_daemon(&d);
		doctor_check_agent_socket(&d);
		doctor_check_known_hangs(&d);
	}
	if (args.program)
		doctor_check_program(&d, args.program);
	if (args.pid)
		doctor_check_process(&d, (int32_t)args.pid);
	status = json_array_size(d.findings) ? CW_EXIT_HANG : CW_EXIT_OK;
	if (args.ask.json) {
		doc = json_pack("{s:s, s:O, s:O, s:O}", "schema", "collwatch.doctor/1", "checked",
				d.checked, "findings", d.findings, "notes", d.notes);
		cw_print_json(doc);
		json_decref(doc);
	} else {
		show(&args, &d);
	}
	json_decref(d.findings);
	json_decref(d.notes);
	json_decref(d.checked);
	return status;
}
