/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history is a rolling hash over all collectives of a member. We know some points (coll_seq,
 * hash) of each history. Two members that share a point have made the same calls up to that
 * coll_seq. Two members with different hashes at one coll_seq have not. Their hashes never agree
 * again, so we also see an old difference. The difference proves a mismatch without a window of
 * ops, but does not show which call differs.
 *
 * The hash does not distinguish a different call from a different grouping of the same calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

struct call_hashes {
	bool differs;
	/* If the histories differ: the calls were the same up to agreed_seq; 0 = not known. */
	uint64_t agreed_seq;
	uint64_t differ_seq; /* if the histories differ: the hashes differ at differ_seq */
};

/*
 * Scratch memory that the caller reuses for comm after comm. The caller zeroes it before the first
 * use.
 */
struct call_hashes_scratch {
	struct call_hashes_slot *slots;
	uint32_t n_slots; /* power of two */
	uint32_t used;
	uint32_t epoch;
};

/* Compares the histories of the comm's members. O(points). Returns 0 or -ENOMEM. */
int call_hashes_compare(const struct cw_snapshot *snap, uint32_t comm,
			struct call_hashes_scratch *scratch, struct call_hashes *ret);

/*
 * Sorts the members of a comm whose histories differ into sides. The members of one side have the
 * same history. We use the points at or after h->differ_seq. The largest side comes first, the
 * ranks of a side ascend by label, and the sides have no op. A member that we cannot compare with
 * the largest side is on no side. If there are fewer than two sides, *ret_n is 0. Returns 0 or
 * -ENOMEM.
 */
int call_hashes_sides(const struct cw_snapshot *snap, uint32_t comm, const struct call_hashes *h,
		      struct cw_arena *a, struct cw_side **ret, uint32_t *ret_n);

void call_hashes_scratch_fini(struct call_hashes_scratch *scratch);
