/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference between two training runs (collwatch.baseline_check/1), as an HTML page. The
 * document is untrusted.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Writes each rank's first difference, with the value of either run. Returns 0 or -EIO. */
int cw_render_baseline_page(FILE *out, const json_t *check);
