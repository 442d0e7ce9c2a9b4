/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of calls (collwatch.ops/1), as tables with a picture of the durations in each row.
 * They form a section of a bundle's page, or a page of their own. The documents are untrusted.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Writes a section of a bundle's page, or nothing if there are no rows. */
void html_put_ops(FILE *out, const json_t *ops);

/*
 * Writes a page with the calls of each job. It lists late ranks from status, a collwatch.status/1
 * (NULL: unknown). Returns 0 or -EIO.
 */
int cw_render_ops_page(FILE *out, const json_t *ops, const json_t *status);
