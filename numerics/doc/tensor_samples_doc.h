/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.summaries/1: the tensor summaries of a job's ranks, as the judge of its numbers takes
 * them (numerics/judge/numerics.h). A bundle keeps them, and any machine can judge them. Writing
 * and reading preserves the answer, bit for bit. The reader's input is untrusted.
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
 * Limits of ranks in a page of a node, and in all its pages: paging ends even with a hostile node.
 */
#define CW_TENSOR_SAMPLES_DOC_PAGE_RANKS 64u
#define CW_TENSOR_SAMPLES_DOC_NODE_RANKS 128u
/* Limits of the reader. */
#define CW_TENSOR_SAMPLES_DOC_MAX_RANKS 1024u
#define CW_TENSOR_SAMPLES_DOC_MAX_COMMS 65536u
#define CW_TENSOR_SAMPLES_DOC_MAX (1u << 17)
/* Bytes that we keep of a call site. */
#define CW_TENSOR_SAMPLES_DOC_SITE_BYTES 256u

/* … and of a device's model. */
#define CW_TENSOR_SAMPLES_DOC_MODEL_BYTES 64u

/* The contents of a rank's record, besides its summaries. */
struct cw_tensor_samples_source {
	int32_t rank, pid;
	int32_t world_size;      /* -1 = the rank does not state it */
	uint64_t n_ops;          /* calls of the rank */
	uint64_t n_samples;      /* tensors that it sampled */
	uint64_t n_kept;         /* … of them in this document */
	uint64_t n_dropped;      /* tensors omitted because all slots were taken */
	int64_t created_wall_ns; /* its record; 0 = unknown */
	int64_t ended_wall_ns;   /* 0 = unknown, or it lives */
	bool lives;
};

struct cw_tensor_samples_head {
	const char *node;
	int64_t taken_wall_ns;
	uint32_t n_omitted; /* ranks with summaries that did not fit */
};

/* New reference; NULL = out of memory. sources: one per rank of the job. */
json_t *cw_tensor_samples_doc(const struct cw_tensor_samples_head *head,
			      const struct cw_numerics_job *job,
			      const struct cw_tensor_samples_source *sources);

/* Why a bundle lacks some nodes' summaries. */
#define CW_TENSOR_SAMPLES_DOC_ASKING                                                               \
	"asking" /* some answers are due, or were as the daemon ended */
#define CW_TENSOR_SAMPLES_DOC_TOO_MUCH "too much" /* for a copy through the daemon */

/*
 * A document without ranks: `silent` (NULL: none) names the nodes without an answer, of `count` in
 * all; why: CW_TENSOR_SAMPLES_DOC_*, or NULL. New reference; NULL = out of memory.
 */
json_t *cw_tensor_samples_doc_of_none(const struct cw_tensor_samples_head *head,
				      const json_t *silent, unsigned count, const char *why);

/*
 * 0, with the job and its sources in the arena; -EBADMSG, -E2BIG with err set, or -ENOMEM. Text is
 * safe for a terminal.
 */
int cw_tensor_samples_doc_read(const json_t *doc, struct cw_arena *arena,
			       struct cw_numerics_job *ret,
			       struct cw_tensor_samples_source **ret_sources, struct cw_err *err);
/* Number of ranks that the document omits. */
uint32_t cw_tensor_samples_doc_omitted(const json_t *doc);
