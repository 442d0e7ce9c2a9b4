/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alignment: did all members of a comm make the same calls in the same order? Members are aligned
 * by coll_seq, the only number that is comparable between ranks, and compared by signature
 * (model/signature.h). The first coll_seq at which two signatures differ is what everything after
 * it follows from, so only that one is reported.
 *
 * Signatures at the same coll_seq are timeless: a difference seen once stays true, whenever the two
 * ranks were sampled.
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
	uint64_t after_seq; /* 0 < after_seq: it is one of those after this, up to seq */
	/*
	 * Whoever waits at this or later may wait because of it: a group waits as one, at the first
	 * of its collectives, wherever in it the calls differ.
	 */
	uint64_t from_seq;
	/*
	 * False: only the rolling hashes tell; then the calls differ by seq at the latest, the
	 * sides have no op, and a different grouping of the same calls would look the same.
	 */
	bool knows_call;
	enum cw_detail detail; /* how they differ */
	bool is_proof;         /* false: seen inside groups whose full extent is not known */
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
 * Compares what is known of comm `comm`; sides are allocated in `a`. O(members + ops known).
 * Returns 0 or -ENOMEM.
 */
int align_comm(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
	       struct align_scratch *scratch, struct alignment *ret);

void align_scratch_fini(struct align_scratch *scratch);

/* Sorts rank indices by label, then index. */
void align_sort_ranks(const struct cw_snapshot *snap, uint32_t *ranks, uint32_t n);

/* Largest first; equal ones by their lowest label, so that the order does not depend on indices. */
bool align_side_before(const struct cw_snapshot *snap, const struct cw_side *x,
		       const struct cw_side *y);
