/* SPDX-License-Identifier: Apache-2.0 */
#include "report/comm_family.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/htable.h"
#include "model/signature.h"

/* We inspect at most this many members of a comm to find the distance between members. */
#define MAX_LOOKED_AT 64u

struct entry {
	uint64_t key;
	uint32_t family;
	UT_hash_handle hh;
};

/*
 * Returns the length of the name without the number at its end, so that "tp_12", "tp[3]" and "tp"
 * are alike.
 */
static size_t stem_of(const char *name)
{
	size_t n = strlen(name);

	while (n > 0 && (isdigit((unsigned char)name[n - 1]) || strchr("_-.:# []()", name[n - 1])))
		n--;
	return n ? n : strlen(name);
}

/*
 * Returns the difference between the labels of the first two known members, divided by their
 * distance in the comm.
 */
static uint64_t distance_of(const struct cw_snapshot *snap, const struct cw_snap_comm *comm)
{
	uint32_t n = comm->nranks < MAX_LOOKED_AT ? comm->nranks : MAX_LOOKED_AT;
	uint32_t first = CW_SNAP_NONE;

	for (uint32_t m = 0; m < n; m++) {
		uint32_t rank = comm->members[m].rank;

		if (rank >= snap->n_ranks)
			continue;
		if (first == CW_SNAP_NONE) {
			first = m;
			continue;
		}
		return (uint64_t)((int64_t)snap->ranks[rank].rank -
				  snap->ranks[comm->members[first].rank].rank) /
		       (m - first);
	}
	return 0;
}

static uint64_t key_of(const struct cw_snapshot *snap, const struct cw_snap_comm *comm)
{
	const char *name = comm->name ? comm->name : "";
	size_t stem = stem_of(name);
	uint64_t h = CW_HASH_INIT;

	for (size_t i = 0; i < stem; i++)
		h = cw_hash_step(h, (unsigned char)name[i]);
	h = cw_hash_step(h, comm->nranks);
	h = cw_hash_step(h, comm->parent_id);
	if (comm->parent_id)
		return cw_hash_step(h, comm->split_ordinal);
	return cw_hash_step(h, distance_of(snap, comm));
}

int comm_families_find(const struct cw_snapshot *snap, struct cw_arena *arena,
		       struct comm_families *ret)
{
	struct entry *table = NULL, *e;
	int r = 0;

	*ret = (struct comm_families){
		.of = cw_arena_new_array(arena, uint32_t, snap->n_comms),
		.families = cw_arena_new_array(arena, struct comm_family, snap->n_comms),
	};
	if (!ret->of || !ret->families)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms && r == 0; c++) {
		uint64_t key = key_of(snap, &snap->comms[c]);

		HASH_FIND(hh, table, &key, sizeof(key), e);
		if (!e) {
			e = cw_arena_new(arena, struct entry);
			if (!e) {
				r = -ENOMEM;
				break;
			}
			e->key = key;
			e->family = ret->n++;
			ret->families[e->family].first = c;
			HASH_ADD(hh, table, key, sizeof(key), e);
			r = cw_htable_added(e) ? 0 : -ENOMEM;
		}
		ret->of[c] = e->family;
		ret->families[e->family].n_comms++;
	}
	HASH_CLEAR(hh, table);
	for (uint32_t i = 0; i < ret->n; i++) {
		struct comm_family *f = &ret->families[i];
		const struct cw_snap_comm *comm = &snap->comms[f->first];
		const char *name = comm->name ? comm->name : "";
		size_t n = f->n_comms > 1 ? stem_of(name) : strlen(name);

		if (*name)
			(void)snprintf(f->name, sizeof(f->name), "%.*s", (int)(n < 64 ? n : 64),
				       name);
		else
			(void)snprintf(f->name, sizeof(f->name), "communicator 0x%016" PRIx64,
				       comm->id);
	}
	return r;
}
