/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a process before the hang was confirmed, as facts and as a sentence. Equal stacks
 * mean that the process is stuck. Changing stacks mean that it is slow. Pure.
 */
#pragma once

#include <stdint.h>

#include "model/arena.h"
#include "model/incident_list.h"

/* One stack of one process. */
struct cw_stack_reading {
	int64_t waited_ns; /* age of the wait at this moment */
	uint64_t lines;    /* hash of the program's functions and lines */
	int64_t run_ns;    /* time that the thread had run; 0 = not known */
	char place[160];   /* the position for people; "" = there is no reading */
};

struct cw_stack_readings {
	int32_t rank; /* -1 = the process has no number */
	int32_t pid;
	const char *host;
	const struct cw_stack_reading *list; /* in order of time */
	uint32_t n;
};

/*
 * Adds the process to incident->earlier_stacks, which has room for it, if it has at least two
 * readings. The facts live as long as the arena. Returns 0 or -ENOMEM.
 */
int cw_earlier_doc_add(const struct cw_stack_readings *readings, struct cw_arena *arena,
		       struct cw_incident_facts *incident);
