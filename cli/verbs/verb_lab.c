/* SPDX-License-Identifier: Apache-2.0 */
/* demo and suite are the laboratory's, which is installed where somebody wants it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/paths.h"
#include "cli/verb.h"
#include "common/cleanup.h"

int cw_verb_lab(int argc, char **argv)
{
	_cleanup_(freep) char **words = NULL;
	char *verb = strchr(argv[0], ' ') + 1; /* "collwatch VERB" */
	char program[PATH_MAX];
	struct cw_err err;

	if (cw_paths_find(CW_PART_LAB, program, &err) < 0) {
		fprintf(stderr,
			"collwatch: %s is part of the laboratory, which is not installed here: "
			"install the package collwatch-lab (%s)\n",
			verb, err.text);
		return CW_EXIT_ERROR;
	}
	words = calloc((size_t)argc + 2, sizeof(*words));
	if (words) {
		words[0] = program;
		words[1] = verb;
		memcpy(&words[2], &argv[1], (size_t)argc * sizeof(*words)); /* with its NULL */
		(void)execv(program, words);
	}
	fprintf(stderr, "collwatch: cannot run %s: %s\n", program, strerror(errno));
	return CW_EXIT_ERROR;
}
