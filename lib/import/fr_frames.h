/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks that torch recorded: the list "frames" of an entry, innermost first. A job issues its
 * calls from few places, so a dump keeps each stack once.
 *
 * Hostile input. One thread; no blocking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "import/pickle/value.h"
#include "model/arena.h"

struct fr_stack;

/* A set of stacks. A zeroed set is empty. The arena owns its memory, except for the table. */
struct cw_fr_stacks {
	struct fr_stack *table; /* by text */
	const char **texts;     /* one per stack: a line per frame, in a snapshot's form */
	uint32_t n;
	/* One element per text, valid during a merge: */
	uint32_t *numbers; /* number in the snapshot; 0 = the snapshot has no room for it */
	bool *is_open;     /* some open call has this stack */
};

/*
 * Sets *ret_number to the number of the stack in this list, from 1. It is 0 if the stack is empty,
 * too large, or beyond the limit of CW_SNAP_MAX_STACKS. Returns 0 or -ENOMEM.
 */
int fr_frames_read(struct cw_fr_stacks *stacks, const struct cw_value *frames,
		   struct cw_arena *arena, uint32_t *ret_number);
/* Call it after the last stack. Frees the parts that only reading needs. */
void fr_frames_read_all(struct cw_fr_stacks *stacks);
