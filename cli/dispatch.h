/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and runs a verb of a command. A command such as collwatch has several verbs. */
#pragma once

#include <stddef.h>

struct argp;

struct cw_verb {
	const char *name;
	/* runs the verb and returns its exit status, as in cli/verb.h */
	int (*run)(int argc, char **argv);
	const char *summary;
	const struct argp *argp; /* the verb's options; NULL = only complete() knows them */
	/*
	 * Returns the i-th value of the argument called `name`, for completion in a shell. NULL = i
	 * is beyond the last value.
	 */
	const char *(*value)(const char *name, unsigned i);
	/*
	 * Completes words like cw_completion_words(); argv[0] is the verb. NULL = argp and value()
	 * are used instead.
	 */
	int (*complete)(int argc, char **argv);
};

/* A row in the table of supported versions. The text is for users. */
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
	const struct cw_supported *supported; /* table that --version --verbose prints */
	size_t n_supported;
};

/*
 * Returns the i-th verb that every command has (completion, help, version). NULL = i is beyond the
 * last.
 */
const char *cw_dispatch_own_verb(unsigned i, const char **ret_summary);

/* Returns the verb with this name; NULL = there is none. */
const struct cw_verb *cw_dispatch_find(const struct cw_command *command, const char *name);

/*
 * Runs the verb in argv[1] and returns main()'s exit status. Does not return if the verb calls
 * exec.
 */
int cw_dispatch(const struct cw_command *command, int argc, char **argv);
