/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of calls (collwatch.ops/1) as tables, with a picture of the durations in each row. The
 * tables form a section of a bundle's page, or their own page. The documents are untrusted.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Writes the section of a bundle's page. Writes nothing if there are no rows. */
void html_put_ops(FILE *out, const json_t *ops);

/*
 * Writes a page with the calls of each job. status: a collwatch.status/1 with the late ranks; NULL
 * = late ranks are unknown. Returns 0 or -EIO.
 */
int cw_render_ops_page(FILE *out, const json_t *ops, const json_t *status);
