/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories: the members of a comm carry a rolling hash over all their collectives, of which points
 * (coll_seq, hash) are known. Two members that share a point have made the same calls up to there;
 * two whose points at one coll_seq differ have not, and never will have again, however long ago it
 * was. That is proof of a mismatch that needs no window of ops, only not of which call it was.
 *
 * What the hash cannot tell apart is a different call and a different grouping of the same calls.
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
	uint64_t differ_seq; /* … and no longer here */
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
 * Sorts the members of a comm whose histories differ into sides of one history each, from the
 * points at or after h->differ_seq: largest first, ranks ascending by label, without an op. Members
 * that cannot be compared with the largest side are on none. Fewer than two sides: *ret_n = 0.
 * Returns 0 or -ENOMEM.
 */
int call_hashes_sides(const struct cw_snapshot *snap, uint32_t comm, const struct call_hashes *h,
		      struct cw_arena *a, struct cw_side **ret, uint32_t *ret_n);

void call_hashes_scratch_fini(struct call_hashes_scratch *scratch);
