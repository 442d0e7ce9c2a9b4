/* SPDX-License-Identifier: Apache-2.0 */
/* How a run differs from another (collwatch.baseline_check/1), as a page. It may be anybody's. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* The first difference of each rank, with what both runs have there. 0 or -EIO. */
int cw_render_baseline_page(FILE *out, const json_t *check);
