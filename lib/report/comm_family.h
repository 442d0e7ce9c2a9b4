/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Families of communicators: counterparts in different parts of the job, such as all the
 * tensor-parallel groups. They have the same size, and the same name except for its number. They
 * also share the ordinal of a split of the same parent or, without a parent, the distance between
 * members. Pure.
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
	uint32_t *of; /* family of each comm of the snapshot */
	struct comm_family *families;
	uint32_t n;
};

/* Allocates from the caller's arena. O(comms). Returns 0 or -ENOMEM. */
int comm_families_find(const struct cw_snapshot *snap, struct cw_arena *arena,
		       struct comm_families *ret);
