/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.ops/1: totals of the ops of this node's ranks, by job. For collwatch.status/1 this file
 * also lists the tensors in which ranks passed NaN or infinity to an op. Each document is for one
 * caller. Loop thread only; does not block.
 */
#pragma once

#include <jansson.h>

#include "daemon/control/status_doc.h"
#include "daemon/node/node.h"

/* The most rows. The busiest come first; we omit and count the others. */
#define CW_OPS_DOC_ROWS 400u

/*
 * Returns a new reference; NULL = out of memory. If node is NULL, the document is that of a node
 * without ranks.
 */
json_t *cw_ops_doc(const struct cw_node *node, const char *node_name,
		   const struct cw_caller *caller);
/* Like cw_ops_doc(), but of one job, for its bundle. */
json_t *cw_ops_doc_of_job(const struct cw_node *node, const char *node_name,
			  const struct cw_job_id *job);
/* Returns the numerics findings of jobs that we have reported. */
json_t *cw_ops_doc_tensor_stats(const struct cw_node *node, int64_t now_ns,
				const struct cw_caller *caller);
json_t *cw_ops_doc_tensors(const struct cw_node *node, int64_t now_ns,
			   const struct cw_caller *caller);
