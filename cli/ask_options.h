/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that all verbs share that query a daemon. These verbs have the options --json and --control.
 * They print the answer or explain why there is none.
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

/*
 * The options --json and --control, as a child of the verb's parser. The verb sets its input, a
 * struct cw_ask_options, at ARGP_KEY_INIT.
 */
extern const struct argp_child cw_ask_children[];
/*
 * The options --json, --control and --no-pager, for verbs with long output. The input of --no-pager
 * (cli/terminal/pager.h), the second child, is a bool.
 */
extern const struct argp_child cw_ask_paged_children[];

/*
 * Prints the document on standard output; main() reports a failed write. On a terminal we escape
 * all characters except ASCII. A bundle or dump from outside may contain text that reverses the
 * writing direction or controls the terminal. Elsewhere we print the document unchanged.
 */
void cw_print_json(const json_t *doc);
/*
 * Prints on standard error why the daemon gave no answer. r: the result of cw_control_ask().
 * Returns an exit status.
 */
int cw_ask_fail(int r, const struct cw_err *err);
