/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds this node's own documents to a new bundle, beside the documents of the leader. ops.json has
 * the totals of the ops of the job's ranks on this node. summaries.json has the last tensor
 * summaries of these ranks, if they make any. With it, a user can examine the tensors after the
 * processes are gone. Neither file covers the ranks of other nodes.
 *
 * Loop thread only; reads memory, does not block. Summaries take some 2 ms per rank, for up to 16
 * ranks.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "report/bundle.h"

struct cw_summaries_source;

/*
 * Adds the documents to the bundle. head: the bundle's incident or post-mortem, which names the job
 * and its user. If memory runs out, a document is missing.
 */
void cw_bundle_parts_add(const struct cw_summaries_source *source, const json_t *head,
			 struct cw_bundle *bundle);
