/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: a member's calls in the form in which we compare them with other members' calls.
 *
 * The ops of one NCCL group are one step. NCCL sorts the ops of a group, so their order does not
 * matter, and we compare the sum of their signatures. If the window has only a part of a group, we
 * do not compare the group at all. Two groups of different extent prove different calls only if the
 * shorter group has a call that the longer group lacks.
 *
 * Pure. The pointers borrow from the snapshot.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

struct call_step {
	uint64_t seq;
	uint64_t signature; /* signature of the op alone */
	/* First and last coll_seq of the op's group. Both are `seq` if the op is not grouped. */
	uint64_t first_seq, last_seq;
	uint64_t sum; /* sum of the group's signatures */
	const struct cw_op *op;
	const struct cw_op *all; /* the ops of the group, or the op alone */
	uint32_t n_all;
};

typedef int (*call_step_fn)(void *userdata, uint32_t member, const struct call_step *step);

/*
 * Calls fn for every known step of the member, once per op. fn may see a step twice. Returns 0 or
 * the first negative result of fn.
 */
int call_step_visit_all(const struct cw_snap_member *m, uint32_t member, call_step_fn fn,
			void *userdata);

enum call_step_agreement {
	CALL_STEP_AGREES,
	CALL_STEP_DIFFERS, /* the calls certainly differ */
	/* The groups differ, but another grouping of the same calls may explain it. */
	CALL_STEP_GROUPED_OTHERWISE,
};

/* Compares the steps of two members. Both steps have the same seq. */
enum call_step_agreement call_step_compare(const struct call_step *a, const struct call_step *b);
