/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed all at once: a snapshot, a verdict and the engine's scratch space each are
 * one arena, so that no path through the engine has anything to release one by one, and 65,536
 * ranks cost a few hundred allocations.
 *
 * Everything handed out is aligned for any type, and zeroed unless said otherwise. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_arena_chunk;

struct cw_arena {
	struct cw_arena_chunk *chunks; /* newest first */
	struct cw_arena_chunk *spare;  /* of earlier rounds; see cw_arena_reset() */
	size_t free_bytes;             /* left in the newest */
	size_t chunk_bytes;            /* of the next chunk */
};

/* NULL = out of memory, or n * size overflows. n = 0 gives a pointer that may not be followed. */
void *cw_arena_array(struct cw_arena *a, size_t n, size_t size);
/* The same, not zeroed: for what is written as a whole. */
void *cw_arena_array_raw(struct cw_arena *a, size_t n, size_t size);

/* Copies of `text` or of n * size bytes; NULL in gives NULL out. */
char *cw_arena_strdup(struct cw_arena *a, const char *text);
void *cw_arena_memdup(struct cw_arena *a, const void *from, size_t n, size_t size);

/*
 * Empties the arena and keeps its memory for the next round, which mostly needs as much: pages that
 * go to the kernel and come back cost more than what is done with them. What several rounds did not
 * need is freed.
 */
void cw_arena_reset(struct cw_arena *a);

/* Takes a zeroed arena too; leaves it zeroed. */
void cw_arena_fini(struct cw_arena *a);

#define cw_arena_new(a, type) ((type *)cw_arena_array((a), 1, sizeof(type)))
#define cw_arena_new_array(a, type, n) ((type *)cw_arena_array((a), (n), sizeof(type)))
