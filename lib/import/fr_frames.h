/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From where torch noted that calls were made: the list "frames" of an entry, innermost first. A
 * job makes its calls from few places, so a dump keeps each stack once.
 *
 * Hostile input. One thread; no blocking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "import/pickle/value.h"
#include "model/arena.h"

struct fr_stack;

/* Zeroed is empty; its memory is the arena's, but for the table. */
struct cw_fr_stacks {
	struct fr_stack *table; /* by text */
	const char **texts;     /* a line per frame, as a snapshot has them */
	uint32_t n;
	/* For the time of a merge, one each: */
	uint32_t *numbers; /* the snapshot's; 0 = it has no place */
	bool *is_open;     /* some call made from there is */
};

/*
 * The number, from 1, of the stack that is written there; 0 = there is none, it is too much, or
 * there are CW_SNAP_MAX_STACKS others. 0 or -ENOMEM.
 */
int fr_frames_read(struct cw_fr_stacks *stacks, const struct cw_value *frames,
		   struct cw_arena *arena, uint32_t *ret_number);
/* All are read: frees what only that needs. */
void fr_frames_read_all(struct cw_fr_stacks *stacks);
