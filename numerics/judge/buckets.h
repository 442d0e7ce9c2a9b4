/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parameters' gradients a collective carried, where the program says in which order it makes
 * its buckets' calls (collwatch.torch: DistributedDataParallel, fully_shard). Nothing in a call
 * says so itself: the calls of a step are held against the buckets' sizes, in their order.
 *
 * A step is as expected where its calls of a bucket's size are the buckets, each once and in their
 * order, and no call on the communicator is missing among those that were looked at. Of such a step
 * it is certain which call is which; of the last step, which may not be over, as far as it has
 * come, where the one before was as expected. Else the only bucket of a call's size may be it.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "numerics/judge/numerics.h"

/* Of one rank and communicator: what each of a step's calls of this kind is fed. Borrowed. */
struct cw_numerics_buckets {
	uint32_t first, last; /* the rank's looks, in the job's: [first, last) */
	uint32_t comm;        /* index into the job's */
	uint8_t kind;
	const uint64_t *elements; /* that go in; in the order of the calls */
	uint32_t n;
	int64_t step; /* from which on it is so; of those before nothing is certain */
};

struct cw_numerics_bucket {
	uint32_t bucket; /* CW_NUMERICS_NONE = none of them, or not known which */
	bool is_certain;
};

/* For each of these looks, of a job that has been judged; ret has last - first entries. -ENOMEM. */
int cw_numerics_buckets_match(const struct cw_numerics_job *job,
			      const struct cw_numerics_buckets *buckets,
			      struct cw_numerics_bucket *ret);
