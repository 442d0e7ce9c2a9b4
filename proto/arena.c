/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define ALIGNMENT alignof(max_align_t)
#define BLOCK_MIN 512u
#define BLOCK_MAX (256u << 10)

struct cw_arena_block {
	struct cw_arena_block *next;
	size_t used, capacity;
	alignas(max_align_t) unsigned char bytes[];
};

static struct cw_arena_block *block_new(size_t capacity)
{
	struct cw_arena_block *block = calloc(1, sizeof(*block) + capacity);

	if (block)
		block->capacity = capacity;
	return block;
}

static size_t round_up(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* The arena lies in its own first block: one allocation for a small message. */
struct cw_arena *cw_arena_new(size_t max_bytes, size_t first_bytes)
{
	size_t capacity = first_bytes < BLOCK_MIN ? BLOCK_MIN : first_bytes;
	struct cw_arena_block *block;
	struct cw_arena *arena;

	block = block_new(round_up(sizeof(*arena)) + round_up(capacity));
	if (!block)
		return NULL;
	arena = (struct cw_arena *)block->bytes;
	block->used = round_up(sizeof(*arena));
	arena->blocks = block;
	arena->max_bytes = max_bytes;
	return arena;
}

struct cw_arena *cw_arena_free(struct cw_arena *arena)
{
	struct cw_arena_block *block, *next;

	if (!arena)
		return NULL;
	for (block = arena->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	return NULL;
}

static struct cw_arena_block *add_block(struct cw_arena *arena, size_t at_least)
{
	/* By a quarter: a leader keeps thousands of these, and pays for what is not used. */
	size_t capacity = arena->used_bytes / 4;
	struct cw_arena_block *block;

	if (capacity < BLOCK_MIN)
		capacity = BLOCK_MIN;
	if (capacity > BLOCK_MAX)
		capacity = BLOCK_MAX;
	if (capacity < at_least)
		capacity = at_least;
	block = block_new(capacity);
	if (!block)
		return NULL;
	block->next = arena->blocks;
	arena->blocks = block;
	return block;
}

void *cw_arena_alloc(struct cw_arena *arena, size_t bytes)
{
	struct cw_arena_block *block = arena->blocks;
	void *p;

	if (bytes > arena->max_bytes || round_up(bytes) > arena->max_bytes - arena->used_bytes) {
		arena->is_exceeded = true;
		return NULL;
	}
	bytes = round_up(bytes ? bytes : 1);
	if (block->capacity - block->used < bytes) {
		block = add_block(arena, bytes);
		if (!block) {
			arena->is_out_of_memory = true;
			return NULL;
		}
	}
	p = block->bytes + block->used;
	block->used += bytes;
	arena->used_bytes += bytes;
	return p;
}

void *cw_arena_calloc(struct cw_arena *arena, size_t n, size_t bytes)
{
	size_t total;

	if (__builtin_mul_overflow(n, bytes, &total)) {
		arena->is_exceeded = true;
		return NULL;
	}
	return cw_arena_alloc(arena, total);
}
