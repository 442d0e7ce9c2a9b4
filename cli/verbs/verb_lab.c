/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `demo` and `suite`, which belong to the laboratory. It is a separate package. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/paths.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"

/*
 * Replaces this process by the program, with `word` before the words of argv. Returns only if that
 * fails, and prints the reason.
 */
static int become(char *program, char *word, int argc, char **argv)
{
	_cleanup_(freep) char **words = cw_or_exit(calloc((size_t)argc + 3, sizeof(*words)));

	words[0] = program;
	words[1] = word;
	memcpy(&words[2], argv, (size_t)argc * sizeof(*words));
	(void)execv(program, words);
	fprintf(stderr, "collwatch: cannot run %s: %s\n", program, strerror(errno));
	return CW_EXIT_ERROR;
}

int cw_verb_lab_complete(int argc, char **argv)
{
	char program[PATH_MAX], word[] = "--complete";

	if (cw_paths_find(CW_PART_LAB, program, NULL) < 0)
		return CW_EXIT_OK; /* without the laboratory there is nothing to complete */
	return become(program, word, argc, argv);
}

int cw_verb_lab(int argc, char **argv)
{
	char *verb = strchr(argv[0], ' ') + 1; /* argv[0] is "collwatch VERB" */
	char program[PATH_MAX];
	struct cw_err err;

	if (cw_paths_find(CW_PART_LAB, program, &err) < 0) {
		fprintf(stderr,
			"collwatch: %s is part of the laboratory, which is not installed: install "
			"the package collwatch-lab (%s)\n",
			verb, err.text);
		return CW_EXIT_ERROR;
	}
	return become(program, verb, argc - 1, argv + 1);
}
