/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: a member's calls in the form in which we compare them with other members' calls.
 *
 * The ops of one NCCL group are one step. Their order inside the group does not matter, because
 * NCCL sorts them itself, so we compare the sum of the whole group. A group of which only a part is
 * in the window is not compared at all. Two groups of different extent prove different calls only
 * if the shorter group has a call that the longer group lacks.
 *
 * Pure; the pointers borrow from the snapshot.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

struct call_step {
	uint64_t seq;
	uint64_t signature;           /* of the op alone */
	uint64_t first_seq, last_seq; /* of its group; both `seq` if not grouped */
	uint64_t sum;                 /* of the group's signatures */
	const struct cw_op *op;
	const struct cw_op *all; /* ops of its group, or the op alone */
	uint32_t n_all;
};

typedef int (*call_step_fn)(void *userdata, uint32_t member, const struct call_step *step);

/*
 * Calls fn for every known step of the member, once per op. Some steps may come twice. Returns 0 or
 * the first negative result of fn.
 */
int call_step_visit_all(const struct cw_snap_member *m, uint32_t member, call_step_fn fn,
			void *userdata);

enum call_step_agreement {
	CALL_STEP_AGREES,
	CALL_STEP_DIFFERS,           /* the calls are different for certain */
	CALL_STEP_GROUPED_OTHERWISE, /* they differ, but grouping alone may explain it */
};

/* Compares two members' steps that have the same seq. */
enum call_step_agreement call_step_compare(const struct call_step *a, const struct call_step *b);
