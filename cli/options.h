/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of options that the verbs have for argp: read once more for what argp does not do,
 * which is to say what a mistyped one may have been, and to complete names in shells.
 */
#pragma once

#include <argp.h>

/* Calls fn for each option of the parser and its children that people may type; borrowed. */
typedef void (*cw_option_fn)(const struct argp_option *option, void *user);
void cw_options_each(const struct argp *argp, cw_option_fn fn, void *user);

/*
 * As argp_parse(); a long option that does not exist but is near to one that does ends the program
 * with that one's name.
 */
error_t cw_options_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
			 void *input);
