/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.summaries/1: the tensor summaries of a job's ranks, as the judge of its numbers takes
 * them (numerics/judge/numerics.h), to be kept in a bundle and judged anywhere. What is written
 * and read again gives the same answer, bit for bit. What is read may be anybody's.
 *
 * Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "model/arena.h"
#include "numerics/judge/numerics.h"

#define CW_LOOKS_DOC_SCHEMA "collwatch.summaries/1"

/* Ranks of a page that a node gives, and of all its pages, at most: they end, whatever it says. */
#define CW_LOOKS_DOC_PAGE_RANKS 64u
#define CW_LOOKS_DOC_NODE_RANKS 128u
/* Of what is read. */
#define CW_LOOKS_DOC_MAX_RANKS 1024u
#define CW_LOOKS_DOC_MAX_COMMS 65536u
#define CW_LOOKS_DOC_MAX_LOOKS (1u << 17)
/* Bytes of a call site that are kept. */
#define CW_LOOKS_DOC_SITE_BYTES 256u

/* … and of a device's model. */
#define CW_LOOKS_DOC_MODEL_BYTES 64u

/* What a rank's record said beside its summaries. */
struct cw_looks_source {
	int32_t rank, pid;
	int32_t world_size;      /* -1 = the rank does not say */
	uint64_t n_ops;          /* calls of the rank */
	uint64_t n_looks;        /* tensors that it looked at */
	uint64_t n_kept;         /* … of which these are here */
	uint64_t n_dropped;      /* tensors left out, for all places were taken */
	int64_t created_wall_ns; /* its record; 0 = not known */
	int64_t ended_wall_ns;   /* 0 = not known, or it lives */
	bool lives;
};

struct cw_looks_head {
	const char *node;
	int64_t taken_wall_ns;
	uint32_t n_left_out; /* ranks with summaries that have no place in it */
};

/* New reference; NULL = out of memory. sources: as many as the job has ranks. */
json_t *cw_looks_doc(const struct cw_looks_head *head, const struct cw_numerics_job *job,
		     const struct cw_looks_source *sources);

/* Why a bundle has not the summaries of all nodes. */
#define CW_LOOKS_DOC_ASKING "asking"     /* some are being asked, or were when the daemon ended */
#define CW_LOOKS_DOC_TOO_MUCH "too much" /* for a copy by way of the daemon */

/*
 * One without ranks: `silent` (NULL: nobody) names who has given nothing, of `count` in all; why:
 * CW_LOOKS_DOC_*, or NULL. New reference; NULL = out of memory.
 */
json_t *cw_looks_doc_of_none(const struct cw_looks_head *head, const json_t *silent, unsigned count,
			     const char *why);

/*
 * 0 with the job and its sources in the arena; -EBADMSG, -E2BIG with err set, or -ENOMEM. Text is
 * fit for a terminal.
 */
int cw_looks_doc_read(const json_t *doc, struct cw_arena *arena, struct cw_numerics_job *ret,
		      struct cw_looks_source **ret_sources, struct cw_err *err);
/* Ranks that it leaves out. */
uint32_t cw_looks_doc_left_out(const json_t *doc);
