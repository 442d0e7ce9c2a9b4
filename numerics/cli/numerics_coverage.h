/* SPDX-License-Identifier: Apache-2.0 */
/* What `numerics` had to look at, as the last line of its text and of its document says it. */
#pragma once

#include <stddef.h>

#include "numerics/read/numerics_files.h"

/* "4 ranks, 212 calls, 398 tensors looked at …", into buf, on one line; returns buf. */
char *numerics_coverage_text(const struct cw_numerics_input *in,
			     const struct cw_numerics_report *said, char *buf, size_t len);
