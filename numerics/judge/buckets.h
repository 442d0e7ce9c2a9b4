/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the parameters whose gradients a collective carried, if the program states the order of
 * its buckets' calls (collwatch.torch: DistributedDataParallel, fully_shard). A call itself does
 * not contain this information. So we compare the calls of a step with the sizes of the buckets,
 * in order.
 *
 * A step is as expected under two conditions. Its calls of a bucket's size are the buckets, each
 * once and in order. And the sampled calls on the communicator have no gap. In such a step we know
 * for certain which call carries which bucket. The last step may be unfinished. If the step before
 * was as expected, we are also certain about the calls of the last step so far. Otherwise, if only
 * one bucket has the size of a call, this bucket is a guess.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "numerics/judge/numerics.h"

/*
 * What we know of one rank and communicator: the input of each call of this kind in a step. All
 * pointers are borrowed.
 */
struct cw_numerics_buckets {
	uint32_t first, last; /* the rank's summaries among the job's: [first, last) */
	uint32_t comm;        /* index into the job's communicators */
	uint8_t kind;
	const uint64_t *elements; /* number of elements of each input, in the order of the calls */
	uint32_t n;
	int64_t step; /* first step for which this holds; we are not certain about earlier steps */
};

struct cw_numerics_bucket {
	uint32_t bucket; /* CW_NUMERICS_NONE = no bucket, or unknown */
	bool is_certain;
};

/*
 * Finds a bucket for each summary [first, last) of a judged job. ret has last - first entries.
 * Returns 0 or -ENOMEM.
 */
int cw_numerics_buckets_match(const struct cw_numerics_job *job,
			      const struct cw_numerics_buckets *buckets,
			      struct cw_numerics_bucket *ret);
