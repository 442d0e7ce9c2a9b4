/* SPDX-License-Identifier: Apache-2.0 */
#include "import/fr_frames.h"

#include <stdio.h>
#include <string.h>

#include "common/htable.h"
#include "common/or_exit/or_exit.h"
#include "model/snapshot.h"

/*
 * The maximum number of frames of a stack, as for a Python stack in a flight record
 * (docs/design/record.md#call-stacks).
 */
#define MAX_FRAMES 40u
#define MAX_FILE 192
#define MAX_FUNCTION 96

struct fr_stack {
	const char *text; /* the key of the hash table */
	uint32_t number;
	UT_hash_handle hh;
};

/*
 * Writes a frame as "file:line in function", cut to fit. Returns the length of the text; 0 = the
 * value is not a frame.
 */
static size_t put_frame(const struct cw_value *frame, char *buf, size_t len)
{
	char file[MAX_FILE], function[MAX_FUNCTION];
	int64_t line;
	int n;

	if (!cw_value_int(cw_value_get(frame, "line"), &line))
		return 0;
	(void)cw_value_copy_text(cw_value_get(frame, "filename"), file, sizeof(file));
	(void)cw_value_copy_text(cw_value_get(frame, "name"), function, sizeof(function));
	if (!file[0] || !function[0])
		return 0;
	n = snprintf(buf, len, "%s:%lld in %s", file, (long long)line, function);
	return n > 0 && (size_t)n < len ? (size_t)n : 0;
}

static uint32_t keep(struct cw_fr_stacks *stacks, const char *text, struct cw_arena *arena)
{
	struct fr_stack *stack;

	HASH_FIND_STR(stacks->table, text, stack);
	if (stack)
		return stack->number;
	if (stacks->n == CW_SNAP_MAX_STACKS)
		return 0;
	if (!stacks->texts)
		stacks->texts =
			cw_or_exit(cw_arena_new_array(arena, const char *, CW_SNAP_MAX_STACKS));
	stack = cw_or_exit(cw_arena_new(arena, struct fr_stack));
	stack->text = cw_or_exit(cw_arena_strdup(arena, text));
	HASH_ADD_KEYPTR(hh, stacks->table, stack->text, strlen(stack->text), stack);
	(void)cw_or_exit(cw_htable_added(stack) ? stack : NULL);
	stacks->texts[stacks->n++] = stack->text;
	return stack->number = stacks->n;
}

uint32_t fr_frames_read(struct cw_fr_stacks *stacks, const struct cw_value *frames,
			struct cw_arena *arena)
{
	char text[MAX_FRAMES * (MAX_FILE + MAX_FUNCTION)];
	uint32_t n = cw_value_count(frames);
	size_t used = 0;

	for (uint32_t i = 0; i < n && i < MAX_FRAMES; i++) {
		size_t gap = used ? 1 : 0;
		size_t added =
			put_frame(frames->items[i], text + used + gap, sizeof(text) - used - gap);

		if (!added)
			continue;
		if (gap)
			text[used] = '\n';
		used += gap + added;
	}
	text[used] = '\0';
	return used ? keep(stacks, text, arena) : 0;
}

void fr_frames_read_all(struct cw_fr_stacks *stacks)
{
	HASH_CLEAR(hh, stacks->table);
}
