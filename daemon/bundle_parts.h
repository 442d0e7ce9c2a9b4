/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds this node's own documents to a new bundle, beside the decisions of the leader. ops.json has
 * the totals of the calls of the job's ranks here. summaries.json has the last tensor summaries of
 * the ranks that make some, so that a user can judge them after the processes are gone. Ranks of
 * other nodes are not in it.
 *
 * Loop thread only; reads memory, does not block. If ranks make summaries, it takes some 2 ms for
 * each of up to 16 ranks.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "report/bundle.h"

struct cw_summaries_source;

/*
 * head is the bundle's incident or post-mortem, which names the job and its user. If we are out of
 * memory, the bundle does not get the document.
 */
void cw_bundle_parts_add(const struct cw_summaries_source *source, const json_t *head,
			 struct cw_bundle *bundle);
