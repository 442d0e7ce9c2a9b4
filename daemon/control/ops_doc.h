/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.ops/1: totals of the ops of this node's ranks, by job. Also, for collwatch.status/1,
 * the tensors in which ranks passed NaN or infinity to an op. For one caller. Loop thread only;
 * does not block.
 */
#pragma once

#include <jansson.h>

#include "daemon/control/status_doc.h"
#include "daemon/node/node.h"

/* Most rows, the busiest first; the others are omitted and counted. */
#define CW_OPS_DOC_ROWS 400u

/* New references; NULL = out of memory. node NULL: as of a node without ranks. */
json_t *cw_ops_doc(const struct cw_node *node, const char *node_name,
		   const struct cw_caller *caller);
/* The document of one job, for its bundle. */
json_t *cw_ops_doc_of_job(const struct cw_node *node, const char *node_name,
			  const struct cw_job_id *job);
/* The numerics findings of jobs that were reported. */
json_t *cw_ops_doc_tensor_stats(const struct cw_node *node, int64_t now_ns,
				const struct cw_caller *caller);
json_t *cw_ops_doc_tensors(const struct cw_node *node, int64_t now_ns,
			   const struct cw_caller *caller);
