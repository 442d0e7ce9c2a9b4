/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.summaries/1 of what this node has of a job: the last tensor summaries of its ranks
 * here, dead ones' included whom nobody here has replaced, page by page; and which jobs of a name
 * there are.
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
#include "identity/job_id.h"

/*
 * `n` ranks at most, those first whose records are the newest, behind the one that was made at
 * after_ns (wall time) by after_pid: whoever asks for the next page says of which rank the last one
 * was. An order that no end of a rank changes.
 */
struct cw_summaries_page {
	bool is_next; /* else from the beginning, whatever after_* are */
	int64_t after_ns;
	int32_t after_pid;
	uint32_t n;
	uint32_t n_looks;    /* set: how many are in it */
	uint32_t n_left_out; /* … and ranks that are not */
};

/* New reference; NULL = out of memory. node NULL: as of a node without ranks. */
json_t *cw_summaries_doc(const struct cw_node *node, const char *node_name,
			 const struct cw_clock *clock, const struct cw_job_id *job,
			 struct cw_summaries_page *page);

/*
 * Jobs that people know by this name (their label, or its part that they gave), have summaries here
 * and may be seen by the caller: an array of objects with `node`, `job` (the label) and `uid`. New
 * reference; NULL = out of memory.
 */
json_t *cw_summaries_doc_jobs(const struct cw_node *node, const char *node_name,
			      const struct cw_caller *caller, const char *name);

/*
 * Since when processes of such jobs live on this node, with summaries or without: whose ended ranks
 * did nothing since then are of an earlier run, wherever the job lives now. An array of objects
 * with `job`, `uid` and `since_ns` (wall time, of the first). New reference; NULL = out of memory.
 */
json_t *cw_summaries_doc_living(const struct cw_node *node, const struct cw_caller *caller,
				const char *name);
/* Jobs of such a list, which is one for all nodes: a name belongs to some few. */
#define CW_SUMMARIES_LIVING_MAX 64u
/* To such a list, where it has place: the earliest counts. 0, or -1: out of memory. */
int cw_summaries_living_add(json_t *list, const char *job, json_int_t uid, json_int_t since_ns);
