/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the baseline of a run: either of a program while its ranks run on this machine, or of
 * existing records and files. Messages go to standard error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/exit_status.h"
#include "common/err.h"

/*
 * Exit statuses, a subset of those common to all verbs. DIFFERS also stands for a program
 * that failed.
 */
enum {
	BASELINE_EXIT_EQUAL = CW_EXIT_OK,
	BASELINE_EXIT_USAGE = CW_EXIT_ERROR,
	BASELINE_EXIT_DIFFERS = CW_EXIT_HANG,
	BASELINE_EXIT_INCOMPARABLE = CW_EXIT_NO_DATA
};

/* All pointers are borrowed. */
struct baseline_making {
	char **program; /* NULL: no program; instead use these files: */
	char **paths;
	uint32_t n_paths;
	const char *agent, *summary; /* NULL = the installed agent, and "full" */
	bool complete;               /* ranks wait until we have read their summaries */
};

/*
 * Makes sure that the directory exists and contains no baselines. Returns 0 or -errno; -EEXIST if
 * it contains some.
 */
int baseline_making_dir(const char *dir, struct cw_err *err);

/*
 * Records the baseline. Returns BASELINE_EXIT_EQUAL if the baseline is complete, USAGE after an
 * error, which the function prints, and INCOMPARABLE if no tensors were sampled. *ret_program is 0
 * if the program succeeded. Blocks until the program ends, and sets environment variables of this
 * process for it.
 */
int baseline_making_run(const struct baseline_making *m, const char *dir, int *ret_program);
