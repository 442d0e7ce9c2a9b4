/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the parameters whose gradients a collective carried. A call itself does not show them. But
 * a program with collwatch.torch states the order in which its buckets are called
 * (DistributedDataParallel, fully_shard). We compare the calls of a step with the sizes of the
 * buckets, in order.
 *
 * A step is as expected under two conditions. Its calls with a bucket's size are the buckets, each
 * once and in order. And the sampled calls on the communicator have no gap. In such a step we know
 * for certain which call carries which bucket. The last step may be unfinished; its calls so far
 * are certain if the step before was as expected. In any other step, if only one bucket has the
 * size of a call, we guess this bucket.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "numerics/judge/numerics.h"

/*
 * The expected calls of one rank on one communicator: the input of each call of this kind in a
 * step. All pointers are borrowed.
 */
struct cw_numerics_buckets {
	uint32_t first, last; /* indices of the rank's summaries in the job: [first, last) */
	uint32_t comm;        /* index into the job's communicators */
	uint8_t kind;
	const uint64_t *elements; /* number of elements of each input, in the order of the calls */
	uint32_t n;
	int64_t step; /* first step with these calls; we are not certain about earlier steps */
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
