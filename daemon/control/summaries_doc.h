/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.summaries/1: the last tensor summaries of a job's ranks on this node, in pages. It
 * includes a dead rank, unless a new process on this node has replaced it. A second document lists
 * the jobs with a given name.
 *
 * Loop thread only; reads memory and does not block. A rank takes some 2 ms to read and some 2 ms
 * to write.
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
 * Selects a page of at most `n` ranks. Ranks with the newest records come first. The page starts
 * after the record that the process after_pid made at after_ns (wall time). To get the next page,
 * the caller names the last rank of this page. This order does not change when a rank ends.
 */
struct cw_summaries_page {
	bool is_next; /* false = start with the first rank, and ignore after_ns and after_pid */
	int64_t after_ns;
	int32_t after_pid;
	uint32_t n;
	uint32_t n_samples; /* result: number of tensor samples in the page */
	uint32_t n_omitted; /* result: number of ranks that were left out */
};

/* The sources of the data; all are borrowed. */
struct cw_summaries_source {
	const struct cw_extension *extension;
	const struct cw_node *node; /* NULL = make the document of a node without ranks */
	const char *node_name;
	const struct cw_clock *clock;
};

/*
 * Returns the page as a new reference; NULL = out of memory. Sets n_samples and n_omitted of the
 * page.
 */
json_t *cw_summaries_doc(const struct cw_summaries_source *source, const struct cw_job_id *job,
			 struct cw_summaries_page *page);

/*
 * Lists the jobs with this name that have summaries on this node and that the caller may see. name:
 * the whole label, or the part of it that a user chose. Returns a new reference to an array of
 * objects with `node`, `job` (the label) and `uid`; NULL = out of memory.
 */
json_t *cw_summaries_doc_jobs(const struct cw_node *node, const char *node_name,
			      const struct cw_caller *caller, const char *name);

/*
 * Lists the living jobs with this name and the start of each on this node. The start is that of the
 * oldest living process, with summaries or without. If an ended rank did nothing after this time,
 * it belongs to an earlier run of the job, also if the job now runs on other nodes. Returns a new
 * reference to an array of objects with `job`, `uid` and `since_ns` (wall time); NULL = out of
 * memory.
 */
json_t *cw_summaries_doc_living(const struct cw_node *node, const struct cw_caller *caller,
				const char *name);
/* Maximum number of jobs in a list of living jobs, over all nodes. Few jobs have the same name. */
#define CW_SUMMARIES_LIVING_MAX 64u
/*
 * Adds a job to a list of living jobs, if there is room. If the job is in the list, the earlier
 * time counts. Returns 0, or -1 if out of memory.
 */
int cw_summaries_living_add(json_t *list, const char *job, json_int_t uid, json_int_t since_ns);
