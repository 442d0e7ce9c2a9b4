/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups the ranks of a snapshot into a few sets in the same position, which makes a drawing of
 * 1,024 ranks readable. Ranks belong to one set if they wait in the same call for ranks of the same
 * sets. Their communicators must be of the same family (report/comm_family.h). A culprit forms a
 * set of its own, but all ranks of a lost node form one set.
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

/* A drawing with more sets is unreadable. Also the number of bits of a mask. */
#define RANK_SETS_MAX 24u
/*
 * If there are more culprits, culprits are grouped into sets too, separately from the other ranks.
 */
#define RANK_SETS_MAX_CULPRITS 12u

struct rank_set {
	uint32_t *ranks; /* indices into the snapshot's ranks, ascending by label */
	uint32_t n_ranks;
	bool is_culprit;
	bool is_full;       /* some ranks of the set wait in a call that every rank has entered */
	uint32_t n_unseen;  /* upper limit of invisible members in the calls of the set */
	uint64_t waits_for; /* mask of sets */
	uint32_t gate;      /* the longest wait of the set; CW_SNAP_NONE = no rank waits */
	uint32_t hops;      /* distance to the nearest culprit; CW_SNAP_NONE = waits for none */
};

struct rank_sets {
	struct cw_arena arena; /* owns all the memory */
	struct waitgraph graph;
	struct rank_set sets[RANK_SETS_MAX]; /* culprits first, then by hops, then by size */
	uint32_t n_sets;
	uint32_t *set_of; /* per rank */
	struct comm_families comms;
};

/*
 * culprits are indices into the snapshot's ranks. Returns 0 or -ENOMEM. The caller calls
 * rank_sets_fini() on *ret in either case.
 */
int rank_sets_make(const struct cw_snapshot *snap, const uint32_t *culprits, uint32_t n,
		   struct rank_sets *ret);
void rank_sets_fini(struct rank_sets *sets);
