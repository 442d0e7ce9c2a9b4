/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combines the collectives of all ranks of a run. For each call on a communicator, it combines the
 * outputs of all members. Then we can compare runs with different numbers of ranks, as far as the
 * mathematics permits. For example, the output of a sum over a data-parallel group is the gradient
 * of the whole batch, however many members share it.
 *
 *	all_reduce, broadcast, reduce    the output of one member that has it
 *	all_gather                       the largest magnitude and the norm of that output
 *	reduce_scatter                   largest magnitude and norm of all members' parts together
 *
 * Programs pad parts with zeros to whole numbers of elements. This changes counts and means, but
 * neither the largest magnitude nor the norm. A part with equal length in both runs is no part of
 * one tensor, but each member's own value, such as its loss. Inputs belong to each rank alone.
 * Calls of other kinds have nothing in common in two such runs. We include them without statistics.
 *
 * Pure.
 */
#pragma once

#include <stdint.h>

#include "numerics/compare/baseline.h"

struct cw_baseline_group_run;

/* Returns NULL if out of memory. */
struct cw_baseline_group_run *cw_baseline_group_run_new(void);

/*
 * First step: adds the communicators of each rank, in the order of ranks. Copies what it needs.
 * Returns 0, -ENOMEM or -E2BIG (too many communicators).
 */
int cw_baseline_group_run_meet(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Second step, once: finds the groups that both jobs have. Two communicators correspond if they
 * have the same name, each is the n-th of that name in its run, and their numbers of members
 * differ. With equal numbers of members, a communicator belongs to a replica of the model, and its
 * values depend on the share of the batch.
 *
 * In torch's names "DESCRIPTION (NAME)", only the description counts, because torch's numbers
 * depend on how many groups there are. Of the groups with only a number, we know the default one,
 * "0". Returns 0 or -ENOMEM.
 */
int cw_baseline_group_runs_choose(struct cw_baseline_group_run *a, struct cw_baseline_group_run *b);

/*
 * Third step: adds each rank's calls on the groups of the second step. Returns 0, -ENOMEM, or
 * -E2BIG if there are more calls than a run may have.
 */
int cw_baseline_group_run_add(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Last step, once: makes the result. *ret borrows from the group run until that is freed.
 * Communicators with the same index in both runs correspond. *ret_omitted: the number of calls on
 * other communicators and between two ranks. A call counts once, not once per member. Returns 0 or
 * -ENOMEM.
 */
int cw_baseline_group_run_finish(struct cw_baseline_group_run *g, struct cw_baseline_run *ret,
				 uint64_t *ret_omitted);

/* Accepts NULL and returns NULL. */
struct cw_baseline_group_run *cw_baseline_group_run_free(struct cw_baseline_group_run *g);
