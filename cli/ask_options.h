/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the verbs that query a daemon: they have the options --json and --control, print the
 * answer, and explain why there is none.
 */
#pragma once

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

struct cw_ask_options {
	const char *control; /* NULL = cw_control_path() decides */
	bool json;
};

/* A child of the verb's parser. Its input, set at ARGP_KEY_INIT, is a struct cw_ask_options. */
extern const struct argp_child cw_ask_children[];
/*
 * For verbs with long output. The second child is the option --no-pager (cli/terminal/pager.h),
 * whose input is a bool.
 */
extern const struct argp_child cw_ask_paged_children[];

/*
 * Prints the document on standard output; main() reports a failed write. On a terminal we print
 * only ASCII and escape all other characters. The text of a stranger's bundle or dump may reverse
 * the writing direction or contain a command. Elsewhere we print the document unchanged.
 */
void cw_print_json(const json_t *doc);
/*
 * Prints on standard error why there is no answer. r: from cw_control_ask(). Returns an exit
 * status.
 */
int cw_ask_fail(int r, const struct cw_err *err);
