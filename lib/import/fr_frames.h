/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks that torch recorded: the list "frames" of an entry, the innermost frame first. A job
 * makes its calls from few places, so we store each stack of a dump once.
 *
 * The input is hostile. One thread; no blocking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "import/pickle/value.h"
#include "model/arena.h"

struct fr_stack;

/*
 * A set of stacks. A zeroed set is empty. The arena owns the memory of the set, except for the
 * table.
 */
struct cw_fr_stacks {
	struct fr_stack *table; /* hash table by text */
	const char **texts; /* one text per stack: a line per frame, in the form of a snapshot */
	uint32_t n;
	/* The arrays below have one element per text. They are valid during a merge. */
	uint32_t *numbers; /* number of the stack in the snapshot; 0 = the snapshot had no room */
	bool *is_open;     /* some open call has the stack */
};

/*
 * Adds the stack to the set. Returns its number, from 1; 0 = the stack is empty, too large, or over
 * the limit of CW_SNAP_MAX_STACKS.
 */
uint32_t fr_frames_read(struct cw_fr_stacks *stacks, const struct cw_value *frames,
			struct cw_arena *arena);
/* Frees the parts that only reading needs. The caller runs this after the last stack. */
void fr_frames_read_all(struct cw_fr_stacks *stacks);
