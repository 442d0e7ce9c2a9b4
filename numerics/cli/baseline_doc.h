/* SPDX-License-Identifier: Apache-2.0 */
/* The document collwatch.baseline_check/1 (docs/schemas.md). */
#pragma once

#include <jansson.h>

#include "numerics/cli/baseline_job.h"

/* Makes the document. New reference; NULL = out of memory. */
json_t *baseline_doc(const struct baseline_job *job, const struct baseline_request *request);
