/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges ranks from several sources into one job: the ranks that `numerics` has read itself, and
 * those in other nodes' documents (collwatch.summaries/1).
 *
 * If several processes claim one rank, we take the living one, else the process with the newest
 * record: a restarted job leaves dead ranks of its earlier run. We take a dead rank without
 * successor under either of two conditions: it made a call after the first living rank began, or it
 * shares a communicator with a rank of the run. If no rank lives, not even one without summaries,
 * the newest one defines the run. The same holds in a bundle, for its moment.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/read/numerics_files.h"

struct numerics_part;

/* A zeroed one is empty. */
struct numerics_gather {
	struct numerics_part *parts;
	/* start of the first living process, with summaries or without; 0 = none */
	int64_t living_since_ns;
};

/* Of a page: the number of its ranks, and its last rank. */
struct numerics_page {
	uint32_t n_ranks, n_omitted;
	int64_t last_ns;
	int32_t last_pid;
};

/*
 * Adds a document. path: the origin to report for its ranks; NULL: they are processes on `node`.
 * Copies what it keeps. 0; -EBADMSG, -E2BIG with err set; -ENOMEM.
 */
int numerics_gather_doc(struct numerics_gather *g, const json_t *doc, const char *path,
			const char *node, struct numerics_page *ret, struct cw_err *err);

/* Adds the selected ranks to those of `in`. 0, -E2BIG or -ENOMEM. */
int numerics_gather_end(struct numerics_gather *g, struct cw_numerics_input *in);
/* Releases everything and leaves g empty. */
void numerics_gather_fini(struct numerics_gather *g);

/* Bytes of the displayed list of nodes without an answer. */
#define NUMERICS_GATHER_SILENT 512u
/* silent: the list so far, initially "". Further names become a "…" if the list is full. */
void numerics_gather_silent(char silent[static NUMERICS_GATHER_SILENT], const char *name);
