/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alignment: did all members of a comm make the same calls in the same order? We align members by
 * coll_seq, the only number that is comparable between ranks, and compare their signatures
 * (model/signature.h). Everything after the first coll_seq with different signatures follows from
 * that difference, so we report only this one.
 *
 * A difference at one coll_seq is permanent: once seen it stays true, even if the two ranks were
 * sampled at different times.
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
	uint64_t seq;       /* first coll_seq where the calls differ; 0 = none seen to differ */
	uint64_t after_seq; /* if not 0, the difference lies after after_seq and at or before seq */
	/*
	 * A rank that waits at this coll_seq or later may wait because of the difference. A
	 * group of calls waits as a whole at its first collective, so this is the first coll_seq
	 * of the group.
	 */
	uint64_t from_seq;
	/*
	 * False if only the rolling hashes show the difference. Then the calls differ at seq or
	 * earlier, and the sides have no op. A different grouping of the same calls would look
	 * the same.
	 */
	bool knows_call;
	enum cw_detail detail; /* how they differ */
	bool is_proof;         /* false: inside groups whose full extent is not known */
	struct cw_side *sides; /* largest first; ranks ascending by label */
	uint32_t n_sides;
	uint32_t majority;   /* index of the side that is larger than any other, or ALIGN_NO_SIDE */
	uint32_t n_compared; /* members on any side */
	struct call_hashes hashes;
};

/* Scratch memory, reused from comm to comm. Zero it before the first use. */
struct align_scratch {
	struct call_hashes_scratch hashes;
	struct align_slot *slots;
	uint32_t n_slots; /* power of two */
	uint32_t used;
	uint32_t epoch;
};

/*
 * Compares the known ops of comm `comm`; sides are allocated in `a`. O(members + ops known).
 * Returns 0 or -ENOMEM.
 */
int align_comm(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
	       struct align_scratch *scratch, struct alignment *ret);

void align_scratch_fini(struct align_scratch *scratch);

/* Sorts rank indices by label, then index. */
void align_sort_ranks(const struct cw_snapshot *snap, uint32_t *ranks, uint32_t n);

/*
 * True if x comes before y: larger sides come first. Sides of equal size are ordered by their
 * lowest label, so that the order does not depend on indices.
 */
bool align_side_before(const struct cw_snapshot *snap, const struct cw_side *x,
		       const struct cw_side *y);
