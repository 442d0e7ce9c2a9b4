/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the baseline of a run, from a program whose ranks run on this machine or from existing
 * records and files. Messages go to standard error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/exit_status.h"
#include "common/err.h"

/*
 * Exit statuses, a subset of those that all verbs have. DIFFERS is also the status if the program
 * failed.
 */
enum {
	BASELINE_EXIT_EQUAL = CW_EXIT_OK,
	BASELINE_EXIT_USAGE = CW_EXIT_ERROR,
	BASELINE_EXIT_DIFFERS = CW_EXIT_HANG,
	BASELINE_EXIT_INCOMPARABLE = CW_EXIT_NO_DATA
};

/* The source of a baseline. All pointers are borrowed. */
struct baseline_making {
	char **program; /* NULL: use the files in paths instead */
	char **paths;
	uint32_t n_paths;
	const char *agent, *summary; /* NULL = the installed agent, and the value "full" */
	bool complete;               /* ranks wait until we have read their summaries */
};

/*
 * Creates the directory if necessary. Returns 0 or -errno; -EEXIST if the directory contains
 * baselines.
 */
int baseline_making_dir(const char *dir, struct cw_err *err);

/*
 * Records the baseline. Returns BASELINE_EXIT_EQUAL if the baseline is complete, INCOMPARABLE if
 * the ranks sampled no tensors, and USAGE after an error, which it prints. *ret_program is 0 if the
 * program succeeded. Blocks until the program ends. Sets environment variables of this process for
 * the program.
 */
int baseline_making_run(const struct baseline_making *m, const char *dir, int *ret_program);
