/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and runs the verb of a command that has several. */
#pragma once

#include <stddef.h>

struct argp;

struct cw_verb {
	const char *name;
	int (*run)(int argc, char **argv); /* as in cli/verb.h */
	const char *summary;
	const struct argp *argp; /* the verb's options; NULL = complete() knows them */
	/*
	 * For shells: returns the i-th value of the argument called `name`. NULL = there are no
	 * more.
	 */
	const char *(*value)(const char *name, unsigned i);
	/*
	 * If set, completes words instead of argp and value(), like cw_completion_words(). argv[0]
	 * is the verb.
	 */
	int (*complete)(int argc, char **argv);
};

/* A row in the table of supported versions, for users. */
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

/*
 * Returns the i-th verb that every command has (completion, help, version). NULL = there are no
 * more.
 */
const char *cw_dispatch_own_verb(unsigned i, const char **ret_summary);

/* Returns the verb with this name; NULL = there is none. */
const struct cw_verb *cw_dispatch_find(const struct cw_command *command, const char *name);

/*
 * Runs the verb in argv[1] and returns main()'s exit status. Does not return if the verb calls
 * exec.
 */
int cw_dispatch(const struct cw_command *command, int argc, char **argv);
