/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that main() calls: one function per verb, each with its own argp parser. */
#pragma once

#include <argp.h>

#include "cli/exit_status.h"

/*
 * The verbs. argv[0] is "collwatch VERB", for usage texts. Each verb returns an exit status; `run`
 * may not return.
 */
int cw_verb_run(int argc, char **argv);
int cw_verb_stacks(int argc, char **argv);
int cw_verb_status(int argc, char **argv);
int cw_verb_top(int argc, char **argv);
int cw_verb_mute(int argc, char **argv);
int cw_verb_report(int argc, char **argv);
int cw_verb_analyze(int argc, char **argv);
int cw_verb_record(int argc, char **argv);
int cw_verb_numerics(int argc, char **argv);
int cw_verb_baseline(int argc, char **argv);
int cw_verb_init_cluster(int argc, char **argv);
int cw_verb_doctor(int argc, char **argv);
/*
 * Runs `demo` and `suite`: replaces this process by collwatch-lab, or names the package to install.
 */
int cw_verb_lab(int argc, char **argv);
/* Completes the words of `demo` and `suite` for a shell; argv[0] is the verb. */
int cw_verb_lab_complete(int argc, char **argv);

/* The options of the verbs. */
extern const struct argp cw_argp_run, cw_argp_stacks, cw_argp_status, cw_argp_mute, cw_argp_report,
	cw_argp_analyze, cw_argp_record, cw_argp_numerics, cw_argp_baseline, cw_argp_init_cluster,
	cw_argp_doctor, cw_argp_top;
/* Returns the i-th name of a verdict class, for completion (cw_verb.value in cli/dispatch.h). */
const char *cw_report_value(const char *name, unsigned i);
