/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a snapshot as a few sets of those that are in the same position: what makes a
 * drawing of 1,024 ranks readable. Ranks are of one set when they wait in the same call of
 * communicators of the same family
 * (report/comm_family.h), for ranks of the same sets; a culprit is a set of its own, but
 * the ranks of a lost node are one.
 *
 * Who waits for whom is the engine's own graph (analysis/waits/waitgraph.h). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/waits/waitgraph.h"
#include "model/arena.h"
#include "model/snapshot.h"
#include "report/comm_family.h"

/* More rows than this nobody reads; also the bits of a mask. */
#define RANK_SETS_MAX 24u
/* Beyond, culprits are folded too, apart from everybody else. */
#define RANK_SETS_MAX_CULPRITS 12u

struct rank_set {
	uint32_t *ranks; /* indices into the snapshot's, ascending by label */
	uint32_t n_ranks;
	bool is_culprit;
	bool is_full;       /* some wait in a call at which nobody is missing */
	uint32_t n_unseen;  /* members of the calls they wait in that are not visible, at most */
	uint64_t waits_for; /* mask of sets */
	uint32_t gate;      /* the longest wait in it; CW_SNAP_NONE = nobody waits */
	uint32_t hops;      /* to the nearest culprit; CW_SNAP_NONE = does not wait for one */
};

struct rank_sets {
	struct cw_arena arena; /* owner of all */
	struct waitgraph graph;
	struct rank_set sets[RANK_SETS_MAX]; /* culprits first, then by hops, then by size */
	uint32_t n_sets;
	uint32_t *set_of; /* per rank */
	struct comm_families comms;
};

/*
 * culprits are indices into the snapshot's ranks. *ret is for rank_sets_fini(), also after an
 * error: -ENOMEM.
 */
int rank_sets_make(const struct cw_snapshot *snap, const uint32_t *culprits, uint32_t n,
		   struct rank_sets *ret);
void rank_sets_fini(struct rank_sets *sets);
