/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the verbs' tables of argp options for two purposes that argp does not serve: suggesting a
 * known option for a mistyped one, and completing names in shells.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>

/* Calls fn for each option of the parser and its children that users may type; borrowed. */
typedef void (*cw_option_fn)(const struct argp_option *option, void *user);
void cw_options_each(const struct argp *argp, cw_option_fn fn, void *user);

/* The position of the next word after some others. */
struct cw_options_place {
	const struct argp_option *option; /* the option whose value it is; NULL = none */
	bool is_ended;                    /* no further word is an option */
};

/*
 * words[0] is the verb, as main()'s argv[0]. A verb that parses in order has an args_doc that
 * begins with "[--]".
 */
struct cw_options_place cw_options_place(const struct argp *argp, int n, char **words);

/*
 * As argp_parse(). An unknown long option that is close to a known one ends the program and
 * suggests that one.
 */
error_t cw_options_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
			 void *input);
