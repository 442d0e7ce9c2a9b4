/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parameters' gradients a collective carried, where the program says in which order it makes
 * its buckets' calls (collwatch.torch: DistributedDataParallel, fully_shard). Nothing in a call
 * says so itself: calls of a step are held against the buckets' sizes, in their order.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/numerics/numerics.h"

/* Of one rank and communicator: what each of a step's calls of this kind is fed. Borrowed. */
struct cw_numerics_buckets {
	uint32_t first, last; /* the rank's looks, in the job's: [first, last) */
	uint32_t comm;        /* index into the job's */
	uint8_t kind;
	const uint64_t *elements; /* that go in; in the order of the calls */
	uint32_t n;
};

struct cw_numerics_bucket {
	uint32_t bucket; /* CW_NUMERICS_NONE = none of them, or not known which */
	/* All calls of its step up to this are as the buckets are. Else it is the only one of its
	 * size. */
	bool is_certain;
};

/* For each of these looks, of a job that has been judged; ret has last - first entries. -ENOMEM. */
int cw_numerics_buckets_match(const struct cw_numerics_job *job,
			      const struct cw_numerics_buckets *buckets,
			      struct cw_numerics_bucket *ret);
