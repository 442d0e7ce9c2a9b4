/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.ops/1: totals of the ops of this node's ranks, by job. This file also makes two lists
 * for collwatch.status/1: the findings on tensor summaries, and the tensors in which ranks passed
 * NaN or infinity to an op. Each document is for one caller. Loop thread only; does not block.
 */
#pragma once

#include <jansson.h>

#include "daemon/control/status_doc.h"
#include "daemon/node/node.h"

/*
 * Maximum number of rows of a document. The busiest rows come first. We count the rows beyond the
 * limit.
 */
#define CW_OPS_DOC_ROWS 400u

/*
 * Returns the document for one caller, as a new reference; NULL = out of memory. node: NULL = make
 * the document of a node without ranks.
 */
json_t *cw_ops_doc(const struct cw_node *node, const char *node_name,
		   const struct cw_caller *caller);
/*
 * Returns the document of one job, for the job's bundle, as a new reference; NULL = out of memory.
 */
json_t *cw_ops_doc_of_job(const struct cw_node *node, const char *node_name,
			  const struct cw_job_id *job);
/*
 * Returns the findings on tensor summaries that we have reported, for jobs that the caller may see.
 */
json_t *cw_ops_doc_tensor_stats(const struct cw_node *node, int64_t now_ns,
				const struct cw_caller *caller);
json_t *cw_ops_doc_tensors(const struct cw_node *node, int64_t now_ns,
			   const struct cw_caller *caller);
