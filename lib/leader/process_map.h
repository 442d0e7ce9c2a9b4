/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job each process of a route was in, so that a component of communicators, computed afresh
 * from every set of digests, finds its job again. Loop thread only.
 */
#pragma once

#include <stdint.h>

#include "leader/route.h"

struct cw_process_map_entry;

struct cw_process_map { /* all zeros = empty */
	struct cw_process_map_entry *entries;
};

/* Its number; 0 = none. */
uint64_t cw_process_map_job(const struct cw_process_map *map, const struct cw_route *route,
			    const struct cw_rank_ref *ref);
/* 0 or -ENOMEM. */
int cw_process_map_set_job(struct cw_process_map *map, const struct cw_route *route,
			   const struct cw_rank_ref *ref, uint64_t job);
/* Forgets what was not set since the last call. */
void cw_process_map_sweep(struct cw_process_map *map);
void cw_process_map_fini(struct cw_process_map *map);
