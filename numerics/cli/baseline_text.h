/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the sentences of `baseline check`. Each function writes one sentence into buf, on one line.
 */
#pragma once

#include <stddef.h>

#include "numerics/cli/baseline_job.h"

#define BASELINE_TEXT_BYTES_MAX 1024

/*
 * Writes "rank 2: what went into all_reduce #12 on dp (step 3, train.py:88 in backward): absmax …".
 */
char *baseline_text_first(const struct baseline_rank *rank, char *buf, size_t len);
/*
 * Writes an op with its statistics:
 * "all_reduce #12 on dp  fp32 x 256 sum  in: absmax 1, mean 0.5, l2 16  out: not looked at whole".
 */
char *baseline_text_op(const struct baseline_op *op, char *buf, size_t len);
/* Writes "checked 398 of 400 ops of 4 ranks, …". */
char *baseline_text_coverage(const struct baseline_job *job, char *buf, size_t len);
/*
 * Returns the names of operators that one run did not sample; "" = none. is_check: of the check,
 * not of the baseline. Borrowed.
 */
const char *baseline_text_denied(const struct baseline_job *job, bool is_check);
/*
 * Writes the losses of one run's files, the sum over all ranks; "" without losses. is_check: true
 * for the run of the check, false for the baseline.
 */
char *baseline_text_lost(const struct baseline_job *job, bool is_check, char *buf, size_t len);
