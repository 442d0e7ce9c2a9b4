/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map uses mark and sweep. An evaluation sets the job of each process that it sees. The sweep
 * after the evaluation drops the entries that were not set since the last sweep.
 */
#include "leader/process_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/htable.h"

/*
 * The key of an entry. We hash and compare the whole struct. It has no padding, and the bytes
 * behind the name are zeros.
 */
struct process_key {
	uint64_t pid, start_ticks;
	char node[CW_NODE_NAME_MAX];
};

_Static_assert(sizeof(struct process_key) == 2 * sizeof(uint64_t) + CW_NODE_NAME_MAX,
	       "padding would be compared");

struct cw_process_map_entry {
	UT_hash_handle hh;
	struct process_key key;
	uint64_t job;
	bool is_current;
};

static struct process_key key_of(const struct cw_job_digests *digests,
				 const struct cw_rank_ref *ref)
{
	const struct cw_msg_rank *rank = cw_job_digests_rank(digests, ref);
	struct process_key key = { .pid = (uint64_t)rank->pid, .start_ticks = rank->start_ticks };
	const char *node = digests->nodes[ref->node].name;

	memcpy(key.node, node, strnlen(node, sizeof(key.node) - 1));
	return key;
}

static struct cw_process_map_entry *find_process(const struct cw_process_map *map,
						 const struct process_key *key)
{
	struct cw_process_map_entry *e;

	HASH_FIND(hh, map->entries, key, sizeof(*key), e);
	return e;
}

uint64_t cw_process_map_job(const struct cw_process_map *map, const struct cw_job_digests *digests,
			    const struct cw_rank_ref *ref)
{
	struct process_key key = key_of(digests, ref);
	const struct cw_process_map_entry *e = find_process(map, &key);

	return e ? e->job : 0;
}

int cw_process_map_set_job(struct cw_process_map *map, const struct cw_job_digests *digests,
			   const struct cw_rank_ref *ref, uint64_t job)
{
	struct process_key key = key_of(digests, ref);
	struct cw_process_map_entry *e = find_process(map, &key);

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		e->key = key;
		HASH_ADD(hh, map->entries, key, sizeof(e->key), e);
		if (!cw_htable_added(e)) {
			free(e);
			return -ENOMEM;
		}
	}
	e->job = job;
	e->is_current = true;
	return 0;
}

void cw_process_map_sweep(struct cw_process_map *map)
{
	struct cw_process_map_entry *e, *tmp;

	HASH_ITER (hh, map->entries, e, tmp) {
		if (!e->is_current) {
			HASH_DEL(map->entries, e);
			free(e);
			continue;
		}
		e->is_current = false;
	}
}

void cw_process_map_fini(struct cw_process_map *map)
{
	cw_process_map_sweep(map);
	cw_process_map_sweep(map); /* the first sweep clears the marks of current entries */
}
