/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the parameters whose gradients a collective carried, if the program states the order of its
 * buckets' calls (collwatch.torch: DistributedDataParallel, fully_shard). A call itself contains no
 * such information: we compare the calls of a step with the buckets' sizes, in order.
 *
 * A step is as expected under two conditions. Its calls of a bucket's size are the buckets, each
 * once and in order, and the sampled calls on the communicator have no gap. In such a step we
 * know for certain which call is which. In the last step, which may be unfinished, we know it for
 * the calls so far if the step before was as expected. Otherwise the only bucket of a call's size
 * is a guess.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "numerics/judge/numerics.h"

/* For one rank and communicator: the input of each of a step's calls of this kind. Borrowed. */
struct cw_numerics_buckets {
	uint32_t first, last; /* the rank's summaries, in the job's: [first, last) */
	uint32_t comm;        /* index into the job's */
	uint8_t kind;
	const uint64_t *elements; /* in the input; in the order of the calls */
	uint32_t n;
	int64_t step; /* valid from this step on; about earlier steps nothing is certain */
};

struct cw_numerics_bucket {
	uint32_t bucket; /* CW_NUMERICS_NONE = no bucket, or unknown */
	bool is_certain;
};

/*
 * Finds a bucket for each of these summaries, of a judged job; ret has last - first
 * entries. -ENOMEM.
 */
int cw_numerics_buckets_match(const struct cw_numerics_job *job,
			      const struct cw_numerics_buckets *buckets,
			      struct cw_numerics_bucket *ret);
