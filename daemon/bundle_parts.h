/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this node puts into a new bundle beside what its leader decided: what the calls of the job's
 * ranks here added up to (ops.json), and the last tensor summaries of those that have some
 * (summaries.json), so that they can be judged when the processes are gone. Ranks of other nodes
 * are not in it.
 *
 * Loop thread only; reads memory, does not block. Where ranks
 * summarise, some 2 ms for each of up to 16.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/clock.h"
#include "report/bundle.h"

struct cw_node;

/* head: the bundle's incident or epitaph, which says whose it is. Out of memory: without. */
void cw_bundle_parts_add(const struct cw_node *node, const char *node_name,
			 const struct cw_clock *clock, const json_t *head,
			 struct cw_bundle *bundle);
