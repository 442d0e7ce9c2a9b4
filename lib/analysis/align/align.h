/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alignment: did all members of a comm make the same calls in the same order? We align members by
 * coll_seq, the only number that is comparable between ranks. Then we compare their signatures
 * (model/signature.h). All differences after the first one follow from it, so we report only the
 * first.
 *
 * A difference at one coll_seq is permanent. It stays true after we have seen it, even if we
 * sampled the two ranks at different times.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/align/call_hashes.h"
#include "model/arena.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

#define ALIGN_NO_SIDE UINT32_MAX

struct alignment {
	/* First coll_seq at which the calls differ; 0 = no difference seen. */
	uint64_t seq;
	/* If not 0, the first difference is after after_seq and at most at seq. */
	uint64_t after_seq;
	/*
	 * A rank that waits at this coll_seq or later may wait because of the difference. A group
	 * of calls waits as a whole at its first collective. So from_seq is the first coll_seq of
	 * the group.
	 */
	uint64_t from_seq;
	/*
	 * False if only the rolling hashes show the difference. Then the calls differ at seq or
	 * earlier, and the sides have no op. A different grouping of the same calls would give the
	 * same hashes.
	 */
	bool knows_call;
	enum cw_detail detail; /* how the calls differ */
	/*
	 * True if the difference is proven. False if the calls are in groups whose full extent is
	 * not known.
	 */
	bool is_proof;
	struct cw_side *sides; /* largest first; ranks ascending by label */
	uint32_t n_sides;
	/* Index of the side that is larger than every other; ALIGN_NO_SIDE = none. */
	uint32_t majority;
	uint32_t n_compared; /* number of members that are on one of the sides */
	struct call_hashes hashes;
};

/*
 * Scratch memory that the caller reuses for comm after comm. The caller zeroes it before the first
 * use.
 */
struct align_scratch {
	struct call_hashes_scratch hashes;
	struct align_slot *slots;
	uint32_t n_slots; /* power of two */
	uint32_t used;
	uint32_t epoch;
};

/*
 * Compares the known ops of comm `comm`. The sides are allocated in `a`. O(members + known ops).
 * Returns 0 or -ENOMEM.
 */
int align_comm(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
	       struct align_scratch *scratch, struct alignment *ret);

void align_scratch_fini(struct align_scratch *scratch);

/* Sorts rank indices by label, then index. */
void align_sort_ranks(const struct cw_snapshot *snap, uint32_t *ranks, uint32_t n);

/*
 * True if side x comes before side y. Larger sides come first. Sides of equal size are ordered by
 * their lowest label, because indices of ranks may differ between evaluations.
 */
bool align_side_before(const struct cw_snapshot *snap, const struct cw_side *x,
		       const struct cw_side *y);
