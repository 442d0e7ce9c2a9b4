/* SPDX-License-Identifier: Apache-2.0 */
/* Documents and sentences about late ranks (docs/schemas.md, collwatch.healthy/1). */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "analysis/slow/slow.h"

/* Returns an array with one object per rank. New reference; NULL = out of memory. */
json_t *cw_slow_doc(const struct cw_snapshot *snap, const struct cw_slow_list *list);

/* Prints a sentence and a hint for each late rank; prints nothing if no rank is late. */
void cw_slow_print(FILE *out, const struct cw_snapshot *snap, const struct cw_slow_list *list);
