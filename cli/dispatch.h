/* SPDX-License-Identifier: Apache-2.0 */
/* A command of several verbs: finds the one that was asked for, and runs it. */
#pragma once

#include <stddef.h>

struct cw_verb {
	const char *name;
	int (*run)(int argc, char **argv); /* as in cli/verb.h */
	const char *summary;
};

struct cw_command {
	const char *name;  /* what usage calls it: "collwatch" */
	const char *about; /* one sentence */
	const char *version;
	const struct cw_verb *verbs;
	size_t count;
};

/* Runs argv[1] and returns main()'s exit status; does not return from verbs that exec. */
int cw_dispatch(const struct cw_command *command, int argc, char **argv);
