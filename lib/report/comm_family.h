/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A family is a set of communicators that are counterparts in different parts of the job, such as
 * all tensor-parallel groups. Its communicators have the same size, and names that differ only in a
 * number. If they are splits, parent and ordinal of the split are equal too. Otherwise, the
 * distance between members is equal. Pure.
 */
#pragma once

#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"

struct comm_family {
	uint32_t first; /* index of one comm of the family */
	uint32_t n_comms;
	char name[72]; /* "tp", "communicator 0x…" */
};

struct comm_families {
	uint32_t *of; /* index of the family of each comm of the snapshot */
	struct comm_family *families;
	uint32_t n;
};

/*
 * Finds the families of the snapshot's communicators in O(comms). *ret lives in the caller's arena.
 * Returns 0 or -ENOMEM.
 */
int comm_families_find(const struct cw_snapshot *snap, struct cw_arena *arena,
		       struct comm_families *ret);
