/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the verbs' tables of argp options for two purposes that argp does not serve. It suggests a
 * known option for a mistyped one. It also completes the names of options in shells.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>

/*
 * Calls fn for each option of the parser and of its children that users may type. fn borrows the
 * option.
 */
typedef void (*cw_option_fn)(const struct argp_option *option, void *user);
void cw_options_each(const struct argp *argp, cw_option_fn fn, void *user);

/* What the next word on the command line can be. */
struct cw_options_place {
	/* the next word is this option's value; NULL = the next word is no value */
	const struct argp_option *option;
	bool is_ended; /* no further word is an option */
};

/*
 * Returns the place after n words. words[0] is the verb, like main()'s argv[0]. "[--]" at the start
 * of args_doc shows that a verb parses its words in order.
 */
struct cw_options_place cw_options_place(const struct argp *argp, int n, char **words);

/*
 * Parses options like argp_parse(). If an unknown long option is close to a known one, suggests the
 * known one and ends the program.
 */
error_t cw_options_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
			 void *input);
