/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: a member's calls as they are compared with other members'.
 *
 * Ops of one NCCL group are one step whose inner order does not matter (NCCL sorts them itself), so
 * inside a group the whole group's sum is compared. A group of which only a part is in the window
 * is not compared at all. Two groups of different extent are no proof of different calls, unless
 * the shorter has one that the longer lacks.
 *
 * Pure; the pointers borrow from the snapshot.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

struct call_step {
	uint64_t seq;
	uint64_t signature;           /* of the op alone */
	uint64_t first_seq, last_seq; /* of its group; both `seq` when not grouped */
	uint64_t sum;                 /* of the group's signatures */
	const struct cw_op *op;
	const struct cw_op *all; /* ops of its group, or op */
	uint32_t n_all;
};

typedef int (*call_step_fn)(void *userdata, uint32_t member, const struct call_step *step);

/*
 * Calls fn for every step known of the member, once per op; some may come twice. Returns 0, or the
 * first negative value fn returned.
 */
int call_step_visit_all(const struct cw_snap_member *m, uint32_t member, call_step_fn fn,
			void *userdata);

enum call_step_agreement {
	CALL_STEP_AGREES,
	CALL_STEP_DIFFERS,           /* these were different calls, for certain */
	CALL_STEP_GROUPED_OTHERWISE, /* different, which grouping alone may explain */
};

/* Of two members' steps with the same seq. */
enum call_step_agreement call_step_compare(const struct call_step *a, const struct call_step *b);
