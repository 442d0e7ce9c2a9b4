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

#include "numerics/compare/baseline.h"

struct cw_baseline_group_run;

/* NULL = out of memory. */
struct cw_baseline_group_run *cw_baseline_group_run_new(void);

/*
 * First, of each rank in their order, which communicators it is in; what it borrows may go
 * afterwards. -ENOMEM, -E2BIG: too many communicators.
 */
int cw_baseline_group_run_meet(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Then, once, what two jobs have in common: the n-th communicators of a name whose numbers of
 * members differ. One that has as many in both is a part of a replica of the model, which carries
 * its share of the batch. Of torch's names "DESCRIPTION (NAME)" the descriptions count, for numbers
 * are given out in another order where there are more groups; a group that has a number alone is
 * known only if it is the default one, "0". -ENOMEM.
 */
int cw_baseline_group_runs_choose(struct cw_baseline_group_run *a, struct cw_baseline_group_run *b);

/* Then each rank's calls on these. -ENOMEM, -E2BIG: more than a run may have. */
int cw_baseline_group_run_add(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * What there is then. ret is borrowed, until the group run is freed; the communicators of both runs
 * are the same by their index. Calls on other communicators, and between two ranks, are counted:
 * of each communicator once. To be called once. -ENOMEM.
 */
int cw_baseline_group_run_finish(struct cw_baseline_group_run *g, struct cw_baseline_run *ret,
				 uint64_t *ret_left_out);

/* Takes NULL; returns it. */
struct cw_baseline_group_run *cw_baseline_group_run_free(struct cw_baseline_group_run *g);
