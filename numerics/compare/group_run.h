/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combines the collectives of all ranks of a run: for each call on a communicator, the members'
 * outputs together. This allows comparing runs with different numbers of ranks, as far as the math
 * permits: the output of a sum over a data-parallel group is the gradient of the whole batch,
 * however many members share it.
 *
 *	all_reduce, broadcast, reduce    the output, of one member that has it
 *	all_gather                       the same, its largest magnitude and norm
 *	reduce_scatter                   both, of all members' parts together
 *
 * Programs pad parts with zeros to whole numbers of elements. This changes counts and means, but
 * neither of those two. A part of equal length in both runs is not a part of one tensor, but each
 * member's own value, such as its loss. Inputs are each rank's own, and calls of other kinds have
 * nothing in common in two such runs: they appear without numbers.
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
 * First step: adds the communicators of each rank, in the order of ranks. The rank's data may go
 * afterwards. -ENOMEM, -E2BIG: too many communicators.
 */
int cw_baseline_group_run_meet(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Second step, once: finds the common groups of two jobs, which are the n-th communicators of a
 * name with different numbers of members. A communicator with equal numbers in both belongs to a
 * replica of the model, which carries its share of the batch. Of torch's names "DESCRIPTION (NAME)"
 * only the description counts, because torch numbers groups in another order if there are more of
 * them. A group with only a number is known only if it is the default one, "0". -ENOMEM.
 */
int cw_baseline_group_runs_choose(struct cw_baseline_group_run *a, struct cw_baseline_group_run *b);

/* Third step: adds each rank's calls on these groups. -ENOMEM, -E2BIG: more than a run may have. */
int cw_baseline_group_run_add(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Last step, once: makes the result. ret is borrowed until the group run is freed; communicators of
 * both runs correspond by index. Counts the calls on other communicators, and between two ranks,
 * once per communicator. -ENOMEM.
 */
int cw_baseline_group_run_finish(struct cw_baseline_group_run *g, struct cw_baseline_run *ret,
				 uint64_t *ret_omitted);

/* Takes NULL; returns it. */
struct cw_baseline_group_run *cw_baseline_group_run_free(struct cw_baseline_group_run *g);
