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

/* A zeroed one is empty; the arena owns its memory, except for the table. */
struct cw_fr_stacks {
	struct fr_stack *table; /* by text */
	const char **texts;     /* one line per frame, in the form of a snapshot */
	uint32_t n;
	/* One each, during a merge: */
	uint32_t *numbers; /* the snapshot's; 0 = the snapshot has no place for it */
	bool *is_open;     /* some open call has this stack */
};

/*
 * Sets the number, from 1, of the stack in this list; 0 = no stack, too large a stack, or one
 * beyond CW_SNAP_MAX_STACKS others. 0 or -ENOMEM.
 */
int fr_frames_read(struct cw_fr_stacks *stacks, const struct cw_value *frames,
		   struct cw_arena *arena, uint32_t *ret_number);
/* After the last stack: frees the parts that only reading needs. */
void fr_frames_read_all(struct cw_fr_stacks *stacks);
