/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.summaries/1: the tensor summaries of a job's ranks, in the form that the judge of its
 * numbers takes (numerics/judge/numerics.h). Bundles contain such documents, and any machine can
 * judge them. The judge's result is bit for bit the same before writing and after reading. The
 * reader's input is untrusted.
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

#define CW_TENSOR_SAMPLES_DOC_SCHEMA "collwatch.summaries/1"

/*
 * Limits on the ranks in one page of a node, and in all its pages together. They end the paging
 * even if a node is hostile.
 */
#define CW_TENSOR_SAMPLES_DOC_PAGE_RANKS 64u
#define CW_TENSOR_SAMPLES_DOC_NODE_RANKS 128u
/* Limits that the reader enforces. */
#define CW_TENSOR_SAMPLES_DOC_MAX_RANKS 1024u
#define CW_TENSOR_SAMPLES_DOC_MAX_COMMS 65536u
#define CW_TENSOR_SAMPLES_DOC_MAX (1u << 17)
/* Bytes of a call site. Longer texts are cut. */
#define CW_TENSOR_SAMPLES_DOC_SITE_BYTES 256u

/* Bytes of a device's model. Longer texts are cut. */
#define CW_TENSOR_SAMPLES_DOC_MODEL_BYTES 64u

/* Facts about a rank's record, besides its summaries. */
struct cw_tensor_samples_source {
	int32_t rank, pid;
	int32_t world_size;      /* -1 = the rank does not state it */
	uint64_t n_ops;          /* calls of the rank */
	uint64_t n_samples;      /* tensors that it sampled */
	uint64_t n_kept;         /* number of these that the document contains */
	uint64_t n_dropped;      /* tensors omitted because all slots were taken */
	int64_t created_wall_ns; /* when its record was created; 0 = unknown */
	int64_t ended_wall_ns;   /* 0 = unknown, or the process lives */
	bool lives;
};

struct cw_tensor_samples_head {
	const char *node;
	int64_t taken_wall_ns;
	uint32_t n_omitted; /* number of ranks whose summaries did not fit */
};

/* Makes a document. sources: one per rank of the job. New reference; NULL = out of memory. */
json_t *cw_tensor_samples_doc(const struct cw_tensor_samples_head *head,
			      const struct cw_numerics_job *job,
			      const struct cw_tensor_samples_source *sources);

/* Reasons why a bundle lacks the summaries of some nodes. */
#define CW_TENSOR_SAMPLES_DOC_ASKING                                                               \
	"asking" /* some answers are due, or were due when the daemon ended */
#define CW_TENSOR_SAMPLES_DOC_TOO_MUCH "too much" /* too large for a copy through the daemon */

/*
 * Makes a document without ranks. silent: the names of nodes without an answer (NULL: none). count:
 * the number of all such nodes. why: CW_TENSOR_SAMPLES_DOC_*, or NULL. New reference; NULL = out of
 * memory.
 */
json_t *cw_tensor_samples_doc_of_none(const struct cw_tensor_samples_head *head,
				      const json_t *silent, unsigned count, const char *why);

/*
 * Reads a document. Returns 0; the job and its sources are then in the arena. -EBADMSG or -E2BIG:
 * err is set. -ENOMEM. Texts are made safe for a terminal.
 */
int cw_tensor_samples_doc_read(const json_t *doc, struct cw_arena *arena,
			       struct cw_numerics_job *ret,
			       struct cw_tensor_samples_source **ret_sources, struct cw_err *err);
/* Returns the number of ranks that the document omits. */
uint32_t cw_tensor_samples_doc_omitted(const json_t *doc);
