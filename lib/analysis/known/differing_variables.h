/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the NCCL_* variables in which the members of a communicator differ, with their values. A
 * difference alone accuses no rank: many variables may differ between healthy nodes.
 *
 * Pure; the memory comes from the caller's arena, and names and values are parts of the snapshot's
 * texts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"
#include "record/nccl_variables.h"

/* We distinguish this many values of a variable. Members with further values count as others. */
#define DIFFERING_VALUES 3u

struct differing_value {
	const char *value; /* NULL = the variable is not set */
	size_t len;
	uint32_t *ranks; /* indices into the snapshot */
	uint32_t n_ranks;
	int32_t first_label; /* the smallest number of these ranks */
};

struct differing_variable {
	const char *name;
	size_t name_len;
	const struct cw_nccl_variable_rule *rule;        /* NULL = the variable may differ */
	struct differing_value values[DIFFERING_VALUES]; /* most ranks first */
	uint32_t n_values;
	uint32_t n_others; /* ranks with further values */
};

/*
 * Lists the variables: first those that are known to hang a job, then those with a rule, then all
 * others, each by name. We ignore members whose variables are not known. Returns 0 or -ENOMEM.
 */
int differing_variables_find(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *arena,
			     struct differing_variable **ret, uint32_t *ret_n);
