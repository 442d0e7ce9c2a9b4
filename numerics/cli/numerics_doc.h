/* SPDX-License-Identifier: Apache-2.0 */
/* The collwatch.numerics/1 document (docs/schemas.md). */
#pragma once

#include <jansson.h>

#include "numerics/read/numerics_files.h"

/*
 * Makes the document. last: the number of summaries to show before a rank's first bad one. New
 * reference; NULL = out of memory.
 */
json_t *numerics_doc(const struct cw_numerics_input *in, const struct cw_numerics_report *said,
		     uint32_t last);
