/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the verbs that ask a daemon have in common: --json and --control, and how an answer or its
 * absence is said.
 */
#pragma once

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

struct cw_ask_options {
	const char *control; /* NULL = as cw_control_path() decides */
	bool json;
};

/* A child of the verb's parser; its input, set at ARGP_KEY_INIT, is a struct cw_ask_options. */
extern const struct argp_child cw_ask_children[];
/* Where text may be long: also --no-pager (cli/terminal/pager.h), the second child, for a bool. */
extern const struct argp_child cw_ask_paged_children[];

/*
 * The document on standard output; main() tells when that cannot be written. To a terminal only
 * ASCII goes, the rest escaped: what a bundle or dump of a stranger says may turn the text around
 * or be a command. Else it is as it is.
 */
void cw_print_json(const json_t *doc);
/* Why there is none, on standard error; r: of cw_control_ask(). Returns an exit status. */
int cw_ask_fail(int r, const struct cw_err *err);
