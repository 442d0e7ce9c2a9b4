/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges ranks from several sources into one job. The sources are the ranks that `numerics` has
 * read itself, and the ranks in other nodes' documents (collwatch.summaries/1).
 *
 * A restarted job leaves dead ranks of its earlier run. So if several processes claim one rank, we
 * take the live one, or else the process with the newest record. We take a dead rank without
 * successor in two cases. It made a call after the first live rank began, or it shares a
 * communicator with a rank of the run. If no rank is alive, with summaries or without, the newest
 * rank defines the run. For a bundle, "alive" means alive at the time of the bundle.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/read/numerics_files.h"

struct numerics_part;

/* The sources to merge. A zeroed struct is empty. */
struct numerics_gather {
	struct numerics_part *parts;
	/* start of the first live process, with summaries or without; 0 = none */
	int64_t living_since_ns;
};

/* A page of a node's answer: the number of its ranks, and a mark of its last rank. */
struct numerics_page {
	uint32_t n_ranks, n_omitted;
	int64_t last_ns;
	int32_t last_pid;
};

/*
 * Adds a document and copies the parts that it needs. path: the origin that we report for the
 * document's ranks; NULL: they are processes on `node`. Returns 0, or -EBADMSG or -E2BIG with err
 * set.
 */
int numerics_gather_doc(struct numerics_gather *g, const json_t *doc, const char *path,
			const char *node, struct numerics_page *ret, struct cw_err *err);

/* Selects the ranks of the run and adds them to those of `in`. Returns 0 or -E2BIG. */
int numerics_gather_end(struct numerics_gather *g, struct cw_numerics_input *in);
/* Releases everything and leaves g empty. */
void numerics_gather_fini(struct numerics_gather *g);

/* The displayed list of nodes without an answer; zeroed = none. */
struct numerics_silent {
	char names[512];
	bool is_cut; /* names ends in "…" */
};

/* Adds a name to the list. If the list is full, further names become one "…". */
void numerics_gather_silent(struct numerics_silent *silent, const char *name);
