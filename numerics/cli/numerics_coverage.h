/* SPDX-License-Identifier: Apache-2.0 */
/* The coverage of `numerics`, for the last line of its text and for its document. */
#pragma once

#include <stddef.h>

#include "numerics/read/numerics_files.h"

/* "4 ranks, 212 calls, 398 tensors looked at …", into buf, on one line; returns buf. */
char *numerics_coverage_text(const struct cw_numerics_input *in,
			     const struct cw_numerics_report *said, char *buf, size_t len);
