/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives of all ranks of a run as those of one: for each call on a communicator, what its
 * members have together. So runs on other numbers of ranks can be held against each other, as far
 * as the math allows: what comes out of a sum over a data-parallel group is the gradient of the
 * whole batch, however many members share it.
 *
 *	all_reduce, broadcast, reduce    what comes out, of one member that has it
 *	all_gather                       the same, its largest magnitude and norm
 *	reduce_scatter                   both of all members' parts together
 *
 * Parts are padded with zeros to whole numbers of elements, which changes counts and means, and
 * neither of those two. Where a part is as long in both runs, it is no part of one tensor, but what
 * each member has of its own, such as its loss. What goes in is each rank's own, and of other kinds
 *there is nothing that two such runs have in common: they are there without numbers.
 *
 * Pure.
 */
#pragma once

#include <stdint.h>

#include "analysis/baseline/baseline.h"

struct cw_baseline_group_run;

/* NULL = out of memory. */
struct cw_baseline_group_run *cw_baseline_group_run_new(void);
/*
 * A rank's, in the order of ranks; what it borrows may go afterwards. -ENOMEM, -E2BIG: more calls
 * or communicators than a run may have.
 */
int cw_baseline_group_run_add(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

struct cw_baseline_group_pair {
	struct cw_baseline_run a, b; /* borrowed, until either group run is freed */
	uint64_t n_left_out_a,
		n_left_out_b; /* calls on other communicators, and between two ranks */
};

/*
 * What two jobs have in common: the n-th communicators of a name whose numbers of members differ.
 * One that has as many in both is a part of a replica of the model, which carries its share of the
 * batch. To be called once. -ENOMEM.
 */
int cw_baseline_group_runs_pair(struct cw_baseline_group_run *a, struct cw_baseline_group_run *b,
				struct cw_baseline_group_pair *ret);

/* Takes NULL; returns it. */
struct cw_baseline_group_run *cw_baseline_group_run_free(struct cw_baseline_group_run *g);
