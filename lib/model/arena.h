/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: memory that we free all at once. A snapshot, a verdict and the engine's scratch space
 * each use one arena. The engine therefore never frees single blocks. A job of 65,536 ranks costs a
 * few hundred allocations.
 *
 * All blocks are aligned for any type. Blocks are zeroed unless a function states otherwise. Not
 * thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_arena_chunk;

struct cw_arena {
	struct cw_arena_chunk *chunks; /* the newest chunk first */
	struct cw_arena_chunk *spare;  /* chunks that a reset emptied; cw_arena_reset() */
	size_t free_bytes;             /* free bytes at the end of the newest chunk */
	size_t chunk_bytes;            /* size of the next chunk */
};

/*
 * Returns zeroed memory for n elements of `size` bytes. NULL = out of memory, or n * size
 * overflows. For n = 0 the caller must not dereference the pointer.
 */
void *cw_arena_array(struct cw_arena *a, size_t n, size_t size);
/*
 * Like cw_arena_array(), but does not zero the memory. Meant for a block that the caller writes
 * completely.
 */
void *cw_arena_array_raw(struct cw_arena *a, size_t n, size_t size);

/* Return a copy of `text`, or of n * size bytes. NULL = out of memory, or the argument is NULL. */
char *cw_arena_strdup(struct cw_arena *a, const char *text);
void *cw_arena_memdup(struct cw_arena *a, const void *from, size_t n, size_t size);

/*
 * Empties the arena and keeps its memory, because the next evaluation usually needs as much.
 * Returning pages to the kernel and fetching them again costs more than our work on them. We free a
 * chunk that was not needed between several resets.
 */
void cw_arena_reset(struct cw_arena *a);

/* Frees all memory and leaves the arena zeroed. The arena may already be zeroed. */
void cw_arena_fini(struct cw_arena *a);

#define cw_arena_new(a, type) ((type *)cw_arena_array((a), 1, sizeof(type)))
#define cw_arena_new_array(a, type, n) ((type *)cw_arena_array((a), (n), sizeof(type)))
