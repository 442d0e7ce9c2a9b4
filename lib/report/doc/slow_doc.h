/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes late, for documents and for people (docs/schemas.md, collwatch.healthy/1). */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "analysis/slow/slow.h"

/* An array, one object for a rank; new reference. NULL = out of memory. */
json_t *cw_slow_doc(const struct cw_snapshot *snap, const struct cw_slow_list *list);

/* A sentence for each, and what to look at; nothing where nobody is late. */
void cw_slow_print(FILE *out, const struct cw_snapshot *snap, const struct cw_slow_list *list);
