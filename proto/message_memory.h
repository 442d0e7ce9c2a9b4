/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one message. We allocate it piece by piece and free it all at once. Not even a hostile
 * sender makes it exceed its limit. Private to the codec. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cw_message_memory_block;

struct cw_message_memory {
	struct cw_message_memory_block *blocks; /* the newest block first */
	size_t used_bytes, max_bytes;
	bool is_exceeded;      /* a request failed because of max_bytes */
	bool is_out_of_memory; /* a request failed because of malloc() */
};

/*
 * Creates an empty memory of at most max_bytes. first_bytes is a hint for the size of the first
 * block. Returns NULL if malloc() fails.
 */
struct cw_message_memory *cw_message_memory_new(size_t max_bytes, size_t first_bytes);
/* Frees all blocks. memory may be NULL. Returns NULL. */
struct cw_message_memory *cw_message_memory_free(struct cw_message_memory *memory);

/*
 * Returns zeroed bytes, aligned for any type. Returns NULL if malloc() fails, or if the request
 * exceeds the limit (is_exceeded).
 */
void *cw_message_memory_alloc(struct cw_message_memory *memory, size_t bytes);
/*
 * Returns zeroed memory for n elements, like cw_message_memory_alloc(). A product that overflows
 * exceeds the limit.
 */
void *cw_message_memory_calloc(struct cw_message_memory *memory, size_t n, size_t bytes);
