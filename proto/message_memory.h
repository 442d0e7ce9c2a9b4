/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one message. We allocate it piece by piece, free it all at once, and never exceed a
 * cap, regardless of a hostile sender's bytes. Private to the codec. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cw_message_memory_block;

struct cw_message_memory {
	struct cw_message_memory_block *blocks; /* newest first */
	size_t used_bytes, max_bytes;
	bool is_exceeded;      /* a request failed because of max_bytes */
	bool is_out_of_memory; /* a request failed because of malloc() */
};

/* Creates an empty one; first_bytes is a hint for the first block. NULL = out of memory. */
struct cw_message_memory *cw_message_memory_new(size_t max_bytes, size_t first_bytes);
/* Takes NULL; returns NULL. */
struct cw_message_memory *cw_message_memory_free(struct cw_message_memory *memory);

/* Zeroed, aligned for any type; NULL = out of memory or cap reached (is_exceeded). */
void *cw_message_memory_alloc(struct cw_message_memory *memory, size_t bytes);
/* The same for n elements, safe against overflow. */
void *cw_message_memory_calloc(struct cw_message_memory *memory, size_t n, size_t bytes);
