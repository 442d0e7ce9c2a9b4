/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/message_memory.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define ALIGNMENT alignof(max_align_t)
#define BLOCK_MIN 512u
#define BLOCK_MAX (256u << 10)

struct cw_message_memory_block {
	struct cw_message_memory_block *next;
	size_t used, capacity;
	alignas(max_align_t) unsigned char bytes[];
};

static struct cw_message_memory_block *block_new(size_t capacity)
{
	struct cw_message_memory_block *block = calloc(1, sizeof(*block) + capacity);

	if (block)
		block->capacity = capacity;
	return block;
}

static size_t round_up(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* The struct lies in its own first block, so a small message takes only one allocation. */
struct cw_message_memory *cw_message_memory_new(size_t max_bytes, size_t first_bytes)
{
	size_t capacity = first_bytes < BLOCK_MIN ? BLOCK_MIN : first_bytes;
	struct cw_message_memory_block *block;
	struct cw_message_memory *memory;

	block = block_new(round_up(sizeof(*memory)) + round_up(capacity));
	if (!block)
		return NULL;
	memory = (struct cw_message_memory *)block->bytes;
	block->used = round_up(sizeof(*memory));
	memory->blocks = block;
	memory->max_bytes = max_bytes;
	return memory;
}

struct cw_message_memory *cw_message_memory_free(struct cw_message_memory *memory)
{
	struct cw_message_memory_block *block, *next;

	if (!memory)
		return NULL;
	for (block = memory->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	return NULL;
}

static struct cw_message_memory_block *add_block(struct cw_message_memory *memory, size_t at_least)
{
	/*
	 * The next block is a quarter of the memory so far. A leader holds thousands of messages,
	 * and larger blocks would leave more memory unused.
	 */
	size_t capacity = memory->used_bytes / 4;
	struct cw_message_memory_block *block;

	if (capacity < BLOCK_MIN)
		capacity = BLOCK_MIN;
	if (capacity > BLOCK_MAX)
		capacity = BLOCK_MAX;
	if (capacity < at_least)
		capacity = at_least;
	block = block_new(capacity);
	if (!block)
		return NULL;
	block->next = memory->blocks;
	memory->blocks = block;
	return block;
}

void *cw_message_memory_alloc(struct cw_message_memory *memory, size_t bytes)
{
	struct cw_message_memory_block *block = memory->blocks;
	void *p;

	if (bytes > memory->max_bytes || round_up(bytes) > memory->max_bytes - memory->used_bytes) {
		memory->is_exceeded = true;
		return NULL;
	}
	bytes = round_up(bytes ? bytes : 1);
	if (block->capacity - block->used < bytes) {
		block = add_block(memory, bytes);
		if (!block) {
			memory->is_out_of_memory = true;
			return NULL;
		}
	}
	p = block->bytes + block->used;
	block->used += bytes;
	memory->used_bytes += bytes;
	return p;
}

void *cw_message_memory_calloc(struct cw_message_memory *memory, size_t n, size_t bytes)
{
	size_t total;

	if (__builtin_mul_overflow(n, bytes, &total)) {
		memory->is_exceeded = true;
		return NULL;
	}
	return cw_message_memory_alloc(memory, total);
}
