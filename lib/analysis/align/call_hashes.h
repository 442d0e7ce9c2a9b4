/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history is a rolling hash over all collectives of a member. We know some points (coll_seq,
 * hash) of each history. Two members that share a point have made the same calls up to it. Two
 * members whose points differ at one coll_seq have not, and their hashes never agree again, however
 * long ago the difference was. This proves a mismatch without a window of ops, but it does not say
 * which call differs.
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
	uint64_t agreed_seq; /* with differs: the calls were the same up to here; 0 = not known */
	uint64_t differ_seq; /* with differs: the calls were no longer the same here */
};

/* Scratch memory, reused from comm to comm. Zero it before the first use. */
struct call_hashes_scratch {
	struct call_hashes_slot *slots;
	uint32_t n_slots; /* power of two */
	uint32_t used;
	uint32_t epoch;
};

/* Do the members' histories differ? O(points). Returns 0 or -ENOMEM. */
int call_hashes_compare(const struct cw_snapshot *snap, uint32_t comm,
			struct call_hashes_scratch *scratch, struct call_hashes *ret);

/*
 * Sorts the members of a comm whose histories differ into sides with one history each. It uses the
 * points at or after h->differ_seq. The largest side comes first, ranks ascend by label, and sides
 * have no op. Members that cannot be compared with the largest side are on no side. If there are
 * fewer than two sides, *ret_n is 0. Returns 0 or -ENOMEM.
 */
int call_hashes_sides(const struct cw_snapshot *snap, uint32_t comm, const struct call_hashes *h,
		      struct cw_arena *a, struct cw_side **ret, uint32_t *ret_n);

void call_hashes_scratch_fini(struct call_hashes_scratch *scratch);
