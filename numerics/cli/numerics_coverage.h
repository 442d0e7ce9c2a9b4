/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes the ranks, calls and tensors that `numerics` has covered, for the last line of its text
 * and for its document.
 */
#pragma once

#include <stddef.h>

#include "numerics/read/numerics_files.h"

/* Writes "4 ranks, 212 calls, 398 tensors looked at …" into buf, on one line. Returns buf. */
char *numerics_coverage_text(const struct cw_numerics_input *in,
			     const struct cw_numerics_report *said, char *buf, size_t len);
