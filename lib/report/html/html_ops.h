/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls added up to (collwatch.ops/1), as tables with a picture of how long calls took: in a
 * bundle's page, and as a page of its own. The documents may be anybody's.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* A section of a bundle's page; none where there are no rows. */
void html_put_ops(FILE *out, const json_t *ops);

/*
 * A page: each job's, and who comes late in it, of those that a collwatch.status/1 tells of (NULL:
 * not known). 0 or -EIO.
 */
int cw_render_ops_page(FILE *out, const json_t *ops, const json_t *status);
