/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and runs the verb of a command that has several. */
#pragma once

#include <stddef.h>

struct argp;

struct cw_verb {
	const char *name;
	int (*run)(int argc, char **argv); /* as in cli/verb.h */
	const char *summary;
	const struct argp *argp; /* its options; NULL = complete() knows these */
	/* For shells: the i-th value of an argument of that name. NULL = no further one. */
	const char *(*value)(const char *name, unsigned i);
	/* Replaces the two above, as cw_completion_words() does; argv[0] is the verb. */
	int (*complete)(int argc, char **argv);
};

/* A row of the supported versions, for users. */
struct cw_supported {
	const char *what;
	const char *versions;
};

struct cw_command {
	const char *name;  /* name in usage texts: "collwatch" */
	const char *about; /* one sentence */
	const char *version;
	const struct cw_verb *verbs;
	size_t count;
	const struct cw_supported *supported; /* for --version --verbose */
	size_t n_supported;
};

/* The i-th verb that every command has (completion, help, version); NULL = no more. */
const char *cw_dispatch_own_verb(unsigned i, const char **ret_summary);

/* NULL = no such verb. */
const struct cw_verb *cw_dispatch_find(const struct cw_command *command, const char *name);

/* Runs argv[1] and returns main()'s exit status; does not return from verbs that exec. */
int cw_dispatch(const struct cw_command *command, int argc, char **argv);
