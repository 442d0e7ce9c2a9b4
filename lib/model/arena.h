/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that we free all at once. A snapshot, a verdict and the engine's scratch space are one
 * arena each. So no path through the engine releases memory piece by piece, and 65,536 ranks cost a
 * few hundred allocations.
 *
 * All blocks are aligned for any type, and zeroed unless stated otherwise. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_arena_chunk;

struct cw_arena {
	struct cw_arena_chunk *chunks; /* newest first */
	struct cw_arena_chunk *spare;  /* chunks of earlier rounds; see cw_arena_reset() */
	size_t free_bytes;             /* free bytes in the newest chunk */
	size_t chunk_bytes;            /* size of the next chunk */
};

/*
 * NULL = out of memory, or n * size overflows. For n = 0 the caller must not dereference
 * the pointer.
 */
void *cw_arena_array(struct cw_arena *a, size_t n, size_t size);
/* The same, not zeroed: for a block that the caller writes completely. */
void *cw_arena_array_raw(struct cw_arena *a, size_t n, size_t size);

/* Copies of `text`, or of n * size bytes; returns NULL for NULL. */
char *cw_arena_strdup(struct cw_arena *a, const char *text);
void *cw_arena_memdup(struct cw_arena *a, const void *from, size_t n, size_t size);

/*
 * Empties the arena and keeps its memory, because the next round mostly needs as much. To return
 * pages to the kernel and fetch them again costs more than our work on them. We free chunks that
 * several rounds did not need.
 */
void cw_arena_reset(struct cw_arena *a);

/* Frees all memory and leaves the arena zeroed. Takes a zeroed arena, too. */
void cw_arena_fini(struct cw_arena *a);

#define cw_arena_new(a, type) ((type *)cw_arena_array((a), 1, sizeof(type)))
#define cw_arena_new_array(a, type, n) ((type *)cw_arena_array((a), (n), sizeof(type)))
