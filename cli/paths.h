/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the other parts of collwatch: next to this executable in a build tree, otherwise in the
 * installed places. The simulated device and the demo's programs exist only if the tests were
 * built.
 */
#pragma once

#include <limits.h>

#include "common/err.h"

enum cw_part {
	CW_PART_AGENT,     /* libcollwatch.so */
	CW_PART_DAEMON,    /* collwatchd */
	CW_PART_SIM,       /* directory of the simulated libcuda.so.1 and libnccl.so.2 */
	CW_PART_TRAIN_C,   /* the demo's training loop */
	CW_PART_TRAIN_PY,  /* the demo's training loop in Python */
	CW_PART_LAB,       /* collwatch-lab */
	CW_PART_TORCH,     /* lab/real-torch of the source tree; never installed */
	CW_PART_REAL_NCCL, /* lab/real-nccl of the source tree; never installed */
	CW_PART__MAX,
};

/*
 * Fills path with the path of the part. Returns 0, or -ENOENT if the part is missing. err then
 * names it and the places that we searched.
 */
int cw_paths_find(enum cw_part part, char path[PATH_MAX], struct cw_err *err);

/*
 * Fills path with the program that execvp() would run, without running it. We search PATH unless
 * `program` contains a slash. Returns 0 or -ENOENT.
 */
int cw_paths_find_program(const char *program, char path[PATH_MAX]);
