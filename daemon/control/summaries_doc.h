/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.summaries/1: the last tensor summaries of a job's ranks on this node, page by page.
 * Dead ranks are included unless a new process on this node has replaced them. A second document
 * lists the jobs of a name.
 *
 * Loop thread only; reads memory, does not block: some 2 ms for each rank of a page, and as long
 * again to write it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "daemon/control/status_doc.h"
#include "daemon/node/node.h"
#include "digest/extension.h"
#include "identity/job_id.h"

/*
 * A page has at most `n` ranks, newest records first. It starts behind the record that after_pid
 * made at after_ns (wall time): to get the next page, the caller names the last rank of this one.
 * The end of a rank does not change this order.
 */
struct cw_summaries_page {
	bool is_next; /* false: start from the beginning and ignore after_* */
	int64_t after_ns;
	int32_t after_pid;
	uint32_t n;
	uint32_t n_samples; /* set: the tensor samples in the page */
	uint32_t n_omitted; /* set: ranks left out of it */
};

/* All borrowed. */
struct cw_summaries_source {
	const struct cw_extension *extension;
	const struct cw_node *node; /* NULL: as of a node without ranks */
	const char *node_name;
	const struct cw_clock *clock;
};

/* New reference; NULL = out of memory. */
json_t *cw_summaries_doc(const struct cw_summaries_source *source, const struct cw_job_id *job,
			 struct cw_summaries_page *page);

/*
 * Jobs that users know by this name (the whole label, or the part that a user gave), that have
 * summaries on this node, and that the caller may see: an array of objects with `node`, `job` (the
 * label) and `uid`. New reference; NULL = out of memory.
 */
json_t *cw_summaries_doc_jobs(const struct cw_node *node, const char *node_name,
			      const struct cw_caller *caller, const char *name);

/*
 * When the oldest living process of each such job started on this node, with summaries or without.
 * An ended rank that did nothing since then belongs to an earlier run, whichever node the job lives
 * on now. An array of objects with `job`, `uid` and `since_ns` (wall time, of the first). New
 * reference; NULL = out of memory.
 */
json_t *cw_summaries_doc_living(const struct cw_node *node, const struct cw_caller *caller,
				const char *name);
/* Most jobs in such a list, which covers all nodes: a name belongs to few jobs. */
#define CW_SUMMARIES_LIVING_MAX 64u
/* Adds a job to such a list if there is room; its earliest time counts. 0, or -1: out of memory. */
int cw_summaries_living_add(json_t *list, const char *job, json_int_t uid, json_int_t since_ns);
