/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the tensor summaries of one job's ranks for the judge of its numbers
 * (numerics/judge/numerics.h). Callers add flight records one by one, and other nodes' summaries.
 * If two added ranks share a communicator, they share it in the result, too.
 *
 * A record keeps the last summaries of its rank and, for each device, the first tensor with NaN or
 * infinity. We know the operator, time and call site of a summary's call as long as the record
 * keeps the call. The record of a live process shows the moment of its last refresh. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "numerics/judge/numerics.h"
#include "record/record_reader.h"

/* Summaries of several ranks. A zeroed struct is empty. */
struct cw_tensor_samples {
	struct cw_numerics_sample *samples;
	struct cw_numerics_comm *comms;
	struct cw_numerics_rank *ranks;
	uint32_t n_samples, room_samples, n_comms, room_comms, n_ranks, room_ranks;
	struct cw_arena texts;
};

/* Counts of tensors in one record. */
struct cw_tensor_samples_count {
	uint64_t newest; /* number of tensors that the rank has sampled so far */
	uint64_t kept;   /* number of these that the record still contains */
};

/*
 * Adds a rank. Its index is the number of ranks before it. Does not keep the record. Returns 0 or
 * -errno. After an error, call only cw_tensor_samples_fini().
 */
int cw_tensor_samples_add(struct cw_tensor_samples *l, struct cw_record *record,
			  struct cw_tensor_samples_count *ret);

/*
 * Adds ranks of the job `more` and copies their texts. wanted: one flag per rank of `more`; NULL =
 * all. Returns 0, -E2BIG or -ENOMEM. After an error, call only cw_tensor_samples_fini().
 */
int cw_tensor_samples_join(struct cw_tensor_samples *l, const struct cw_numerics_job *more,
			   const bool *wanted);

/* Returns the job of all added ranks. The caller borrows it until the next addition. */
struct cw_numerics_job cw_tensor_samples_job(const struct cw_tensor_samples *l);

/* Releases everything and leaves l empty. */
void cw_tensor_samples_fini(struct cw_tensor_samples *l);
