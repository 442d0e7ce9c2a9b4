/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference between two runs (collwatch.baseline_check/1), as a page. The document
 * is untrusted.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/*
 * Writes the first difference of each rank, with the values of both runs there. Returns 0 or -EIO.
 */
int cw_render_baseline_page(FILE *out, const json_t *check);
