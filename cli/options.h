/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the verbs' tables of argp options for two purposes that argp does not serve. It suggests a
 * known option for a mistyped one, and completes names in shells.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>

/*
 * Calls fn for each option that users may type, of the parser and its children. The option is
 * borrowed.
 */
typedef void (*cw_option_fn)(const struct argp_option *option, void *user);
void cw_options_each(const struct argp *argp, cw_option_fn fn, void *user);

/* What the next word on the command line can be, after some other words. */
struct cw_options_place {
	const struct argp_option *option; /* its value is the next word; NULL = none */
	bool is_ended;                    /* no further word is an option */
};

/*
 * Returns the place after n words. words[0] is the verb, like main()'s argv[0]. If a verb parses
 * its words in order, its args_doc begins with "[--]".
 */
struct cw_options_place cw_options_place(const struct argp *argp, int n, char **words);

/*
 * Like argp_parse(). But if an unknown long option is close to a known one, suggests the known one
 * and ends the program.
 */
error_t cw_options_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
			 void *input);
