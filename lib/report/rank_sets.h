/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups the ranks of a snapshot into a few sets with the same position, so that a drawing of 1,024
 * ranks is readable. Two ranks belong to one set if they wait in the same call for ranks of the
 * same sets. Their communicators must be of the same family (report/comm_family.h). A culprit forms
 * its own set, but all ranks of a lost node form one set.
 *
 * The waits between sets come from the engine's own graph (analysis/waits/waitgraph.h). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/waits/waitgraph.h"
#include "model/arena.h"
#include "model/snapshot.h"
#include "report/comm_family.h"

/*
 * Limit on the sets. A drawing with more is unreadable, and a mask of sets has bits for this many.
 */
#define RANK_SETS_MAX 24u
/*
 * Up to this many culprits have a set each. More culprits form common sets, apart from the other
 * ranks.
 */
#define RANK_SETS_MAX_CULPRITS 12u

struct rank_set {
	uint32_t *ranks; /* indices into the snapshot's ranks, ascending by label */
	uint32_t n_ranks;
	bool is_culprit;
	bool is_full; /* some ranks of the set wait in a call that every rank has entered */
	/* upper limit for the number of invisible members in the calls of the set */
	uint32_t n_unseen;
	uint64_t waits_for; /* mask of the sets that this set waits for */
	/*
	 * index of the gate (a call that ranks wait in) with the set's longest wait; CW_SNAP_NONE =
	 * no rank waits
	 */
	uint32_t gate;
	/* number of waits to the nearest culprit; CW_SNAP_NONE = the set waits for none */
	uint32_t hops;
};

struct rank_sets {
	struct cw_arena arena; /* owns the memory of the other members */
	struct waitgraph graph;
	struct rank_set sets[RANK_SETS_MAX]; /* culprits first, then by hops, then by size */
	uint32_t n_sets;
	uint32_t *set_of; /* index of the set of each rank */
	struct comm_families comms;
};

/*
 * Makes the sets of a snapshot. culprits are indices into the snapshot's ranks. Returns 0 or
 * -ENOMEM. The caller calls rank_sets_fini() on *ret in either case.
 */
int rank_sets_make(const struct cw_snapshot *snap, const uint32_t *culprits, uint32_t n,
		   struct rank_sets *ret);
void rank_sets_fini(struct rank_sets *sets);
