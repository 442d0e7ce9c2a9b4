/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combines the collectives of all ranks of a run. For each call on a communicator, it combines the
 * outputs of all members. This allows comparing runs with different numbers of ranks, as far as the
 * math permits. For example, the output of a sum over a data-parallel group is the gradient of the
 * whole batch, however many members share it.
 *
 *	all_reduce, broadcast, reduce    the output of one member that has it
 *	all_gather                       the largest magnitude and the norm of that output
 *	reduce_scatter                   largest magnitude and norm of all members' parts together
 *
 * Programs pad parts with zeros to whole numbers of elements. This changes counts and means, but
 * neither the largest magnitude nor the norm. A part of equal length in both runs is not a part of
 * one tensor, but each member's own value, such as its loss. Inputs belong to each rank alone, and
 * calls of other kinds have nothing in common in two such runs: they appear without numbers.
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
 * First step: adds the communicators of each rank, in the order of ranks. The caller may release
 * the rank's data afterwards. Returns 0, -ENOMEM or -E2BIG (too many communicators).
 */
int cw_baseline_group_run_meet(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Second step, once: finds the groups that both jobs have. The n-th communicator of a name in one
 * run corresponds to the n-th in the other, if their numbers of members differ. A communicator with
 * equal numbers of members belongs to a replica of the model, which carries its share of the batch.
 * In torch's names "DESCRIPTION (NAME)", only the description counts, because torch's numbers
 * depend on how many groups there are. A group with only a number is known only if it is the
 * default one, "0". Returns 0 or -ENOMEM.
 */
int cw_baseline_group_runs_choose(struct cw_baseline_group_run *a, struct cw_baseline_group_run *b);

/*
 * Third step: adds each rank's calls on these groups. Returns 0, -ENOMEM, or -E2BIG if there are
 * more calls than a run may have.
 */
int cw_baseline_group_run_add(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

/*
 * Last step, once: makes the result. ret is borrowed until the group run is freed. Communicators of
 * both runs correspond by index. *ret_omitted counts the calls on other communicators and between
 * two ranks, once per communicator. Returns 0 or -ENOMEM.
 */
int cw_baseline_group_run_finish(struct cw_baseline_group_run *g, struct cw_baseline_run *ret,
				 uint64_t *ret_omitted);

/* Accepts NULL and returns NULL. */
struct cw_baseline_group_run *cw_baseline_group_run_free(struct cw_baseline_group_run *g);
