/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of options that the verbs have for argp: read once more for what argp does not do,
 * which is to say what a mistyped one may have been, and to complete names in shells.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>

/* Calls fn for each option of the parser and its children that people may type; borrowed. */
typedef void (*cw_option_fn)(const struct argp_option *option, void *user);
void cw_options_each(const struct argp *argp, cw_option_fn fn, void *user);

/* Where the word behind some others stands. */
struct cw_options_place {
	const struct argp_option *option; /* whose value it is; NULL = none's */
	bool is_ended;                    /* nothing behind here is an option */
};

/* words[0] is the verb, as main()'s argv[0]. Who parses in order says so: args_doc begins "[--]".
 */
struct cw_options_place cw_options_place(const struct argp *argp, int n, char **words);

/*
 * As argp_parse(); a long option that does not exist but is near to one that does ends the program
 * with that one's name.
 */
error_t cw_options_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
			 void *input);
