/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask_options.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/control.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"

enum { OPT_JSON = 512, OPT_CONTROL };

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct cw_ask_options *o = state->input;

	switch (key) {
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_CONTROL:
		o->control = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options =
		(const struct argp_option[]){
			{ "json", OPT_JSON, NULL, 0, "Print JSON", 0 },
			{ "control", OPT_CONTROL, "SOCKET", 0,
			  "Control socket of the daemon (default: " CW_CONTROL_SOCKET ")", 0 },
			{ 0 },
		},
	.parser = parse_opt,
};

const struct argp_child cw_ask_children[] = { { &argp, 0, NULL, 0 }, { 0 } };
const struct argp_child cw_ask_paged_children[] = { { &argp, 0, NULL, 0 },
						    { &cw_pager_argp, 0, NULL, 0 },
						    { 0 } };

void cw_print_json(const json_t *doc)
{
	size_t flags = JSON_INDENT(1);

	if (isatty(STDOUT_FILENO))
		flags |= JSON_ENSURE_ASCII;
	(void)json_dumpf(doc, stdout, flags);
	(void)putchar('\n');
}

int cw_ask_fail(int r, const struct cw_err *err)
{
	fprintf(stderr, "collwatch: %s\n", err->text);
	return r == -ENODATA ? CW_EXIT_NO_DATA : CW_EXIT_ERROR;
}
