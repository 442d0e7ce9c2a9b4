/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a snapshot, grouped into a few sets in the same position: this makes a drawing of
 * 1,024 ranks readable. Ranks belong to one set if they wait in the same call, for ranks of the
 * same sets. Their communicators must be of the same family (report/comm_family.h). A culprit is a
 * set of its own, but the ranks of a lost node are one set.
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

/* More rows are unreadable; also the number of bits of a mask. */
#define RANK_SETS_MAX 24u
/* With more culprits, we fold culprits too, separately from the other ranks. */
#define RANK_SETS_MAX_CULPRITS 12u

struct rank_set {
	uint32_t *ranks; /* indices into the snapshot's, ascending by label */
	uint32_t n_ranks;
	bool is_culprit;
	bool is_full;       /* some of the set wait in a call that no rank is missing at */
	uint32_t n_unseen;  /* invisible members of the calls that they wait in, at most */
	uint64_t waits_for; /* mask of sets */
	uint32_t gate;      /* the longest wait of the set; CW_SNAP_NONE = no rank waits */
	uint32_t hops;      /* to the nearest culprit; CW_SNAP_NONE = waits for none */
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
 * culprits are indices into the snapshot's ranks. The caller releases *ret with rank_sets_fini(),
 * also after an error: -ENOMEM.
 */
int rank_sets_make(const struct cw_snapshot *snap, const uint32_t *culprits, uint32_t n,
		   struct rank_sets *ret);
void rank_sets_fini(struct rank_sets *sets);
