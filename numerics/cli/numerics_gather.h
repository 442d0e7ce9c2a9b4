/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks from several places, made the ranks of one job: what `numerics` has read by itself, and
 * what others have gathered (collwatch.summaries/1).
 *
 * Of several that say they are one rank the one that lives is taken, else the one whose record was
 * made last: a job that was started again leaves ended ranks of its earlier run. An ended rank that
 * nobody replaced is taken where it made a call after the first of those that live began, or shares
 * a communicator with one of the run; where none lives, not even one without summaries, the
 * newest is the run. So it is in a bundle, of the moment of which it is.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/read/numerics_files.h"

struct numerics_part;

/* Zeroed is empty. */
struct numerics_gather {
	struct numerics_part *parts;
	int64_t living_since_ns; /* when the first began that lives, with summaries or without; 0 =
				    none */
};

/* Of a page: how many ranks, and which was the last. */
struct numerics_page {
	uint32_t n_ranks, n_left_out;
	int64_t last_ns;
	int32_t last_pid;
};

/*
 * Adds what a document says. path: where its ranks are said to be from; else (NULL) of processes on
 * `node`. Copies what it takes. 0; -EBADMSG, -E2BIG with err set; -ENOMEM.
 */
int numerics_gather_doc(struct numerics_gather *g, const json_t *doc, const char *path,
			const char *node, struct numerics_page *ret, struct cw_err *err);

/* Beside the ranks of `in`, which gets all that are taken. 0, -E2BIG or -ENOMEM. */
int numerics_gather_end(struct numerics_gather *g, struct cw_numerics_input *in);
/* Leaves it empty. */
void numerics_gather_fini(struct numerics_gather *g);

/* Bytes of a list for people of the nodes that have not said what they know. */
#define NUMERICS_GATHER_SILENT 512u
/* silent: that list so far, at first "". Names beyond its end become a "…". */
void numerics_gather_silent(char silent[static NUMERICS_GATHER_SILENT], const char *name);
