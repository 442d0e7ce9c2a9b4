/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the baseline of a run: of a program, whose ranks on this machine are read while it runs, or
 * of what others have left. What is to be said meanwhile goes to standard error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/exit_status.h"
#include "common/err.h"

/* Of the table of all verbs. DIFFERS is also a program that failed. */
enum {
	BASELINE_EXIT_EQUAL = CW_EXIT_OK,
	BASELINE_EXIT_USAGE = CW_EXIT_ERROR,
	BASELINE_EXIT_DIFFERS = CW_EXIT_HANG,
	BASELINE_EXIT_INCOMPARABLE = CW_EXIT_NO_DATA
};

/* Borrowed. */
struct baseline_making {
	char **program; /* NULL: records and files of collwatch.torch instead, which are: */
	char **paths;
	uint32_t n_paths;
	const char *agent, *summary; /* NULL = the installed one; full */
	bool complete;               /* ranks wait until their summaries have been read */
};

/* A directory without baselines; made if it is not there. -EEXIST: it has some. */
int baseline_making_dir(const char *dir, struct cw_err *err);

/*
 * BASELINE_EXIT_EQUAL: it is made. USAGE: something went wrong, and has been said; INCOMPARABLE: no
 * tensors were looked at. *ret_program is 0 where the program ended well. Blocks until it ends, and
 * sets variables of this process's environment for it.
 */
int baseline_making_run(const struct baseline_making *m, const char *dir, int *ret_program);
