/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of collwatch-lab, like those of cli/verb.h. */
#pragma once

#include <argp.h>

int cw_verb_demo(int argc, char **argv);
int cw_verb_suite(int argc, char **argv);
int cw_verb_proxies(int argc, char **argv);

/* Their options, and the scenarios of the demo, in the form of struct cw_verb (cli/dispatch.h). */
extern const struct argp cw_argp_demo, cw_argp_suite, cw_argp_proxies;
const char *cw_demo_value(const char *name, unsigned i);
