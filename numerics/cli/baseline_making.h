/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the baseline of a run: of a program, while its ranks run on this machine, or of existing
 * records and files. Messages go to standard error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/exit_status.h"
#include "common/err.h"

/* Values of the table of all verbs. DIFFERS also means a program that failed. */
enum {
	BASELINE_EXIT_EQUAL = CW_EXIT_OK,
	BASELINE_EXIT_USAGE = CW_EXIT_ERROR,
	BASELINE_EXIT_DIFFERS = CW_EXIT_HANG,
	BASELINE_EXIT_INCOMPARABLE = CW_EXIT_NO_DATA
};

/* All pointers are borrowed. */
struct baseline_making {
	char **program; /* NULL: use records and files of collwatch.torch instead, which are: */
	char **paths;
	uint32_t n_paths;
	const char *agent, *summary; /* NULL = the installed one; full */
	bool complete;               /* ranks wait until we have read their summaries */
};

/* Makes sure that the directory exists and contains no baselines. -EEXIST: it has some. */
int baseline_making_dir(const char *dir, struct cw_err *err);

/*
 * BASELINE_EXIT_EQUAL: the baseline is complete. USAGE: an error occurred, and the function printed
 * it; INCOMPARABLE: no tensors were sampled. *ret_program is 0 if the program succeeded. Blocks
 * until it ends, and sets variables of this process's environment for it.
 */
int baseline_making_run(const struct baseline_making *m, const char *dir, int *ret_program);
