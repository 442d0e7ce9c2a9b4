/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a leader keeps of one job id: the route, the jobs that its ranks fall into, and when they
 * are looked at. Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "leader/job.h"
#include "leader/process_map.h"
#include "leader/route.h"

struct cw_led_route {
	UT_hash_handle hh;
	struct cw_route route; /* in the table by its job */
	struct cw_process_map processes;
	struct cw_job *jobs;
	struct cw_epitaphs epitaphs; /* of those that ended */
	/* Its ranks by component, as of a shape of the route; NULL = none yet. */
	struct cw_rank_ref *refs;
	unsigned n_refs;
	uint64_t refs_shape;
	bool is_led; /* else only kept, in case its leader is lost */
	/* A node that cannot be reached any more announced an incident of it. */
	bool is_announced_elsewhere;
	int64_t since_ns;         /* when it got its place */
	uint64_t pass;            /* over its jobs; those with this number were looked at */
	bool is_partly_looked_at; /* others wait for another turn of the loop */
	int64_t next_ns;
	int64_t looked_ns;     /* when it was looked at last */
	int64_t not_before_ns; /* its user has had its share until then */
};
