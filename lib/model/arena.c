/* SPDX-License-Identifier: Apache-2.0 */
#include "model/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * The first chunk of an arena is small, for small jobs. Chunks grow, so that large jobs need few.
 */
#define FIRST_CHUNK_BYTES ((size_t)16 << 10)
#define LARGEST_CHUNK_BYTES ((size_t)4 << 20)
#define ALIGNMENT _Alignof(max_align_t)

/* We free a spare chunk after this many resets of the arena in which no block used the chunk. */
#define SPARE_ROUNDS 8u

struct cw_arena_chunk {
	struct cw_arena_chunk *next;
	unsigned unused_rounds;
	bool is_dirty;
	size_t bytes; /* bytes in `data` */
	_Alignas(max_align_t) unsigned char data[];
};

/*
 * Takes the spare chunk that fits best. We skip a chunk of more than about twice the size: most of
 * it would stay unused. Returns NULL if no spare chunk fits.
 */
static struct cw_arena_chunk *take_spare(struct cw_arena *a, size_t bytes)
{
	struct cw_arena_chunk **link, **best = NULL, *c;

	for (link = &a->spare; *link; link = &(*link)->next)
		if ((*link)->bytes >= bytes && (*link)->bytes / 2 <= bytes &&
		    (!best || (*link)->bytes < (*best)->bytes))
			best = link;
	if (!best)
		return NULL;
	c = *best;
	*best = c->next;
	c->next = NULL;
	c->unused_rounds = 0;
	c->is_dirty = true;
	return c;
}

/*
 * Frees spare chunks before we allocate a chunk of `bytes` bytes. Sizes have changed since the last
 * resets, and without this the memory of the arena would only grow. Frees about as many bytes as we
 * allocate.
 */
static void drop_spares(struct cw_arena *a, size_t bytes)
{
	size_t dropped = 0;

	while (a->spare && dropped < bytes) {
		struct cw_arena_chunk *c = a->spare;

		a->spare = c->next;
		dropped += c->bytes;
		free(c);
	}
}

static struct cw_arena_chunk *chunk_new(struct cw_arena *a, size_t bytes)
{
	struct cw_arena_chunk *c = take_spare(a, bytes);

	if (c)
		return c;
	if (bytes > SIZE_MAX - sizeof(*c))
		return NULL;
	drop_spares(a, bytes);
	/*
	 * We use calloc() because the kernel already zeroes fresh pages. Pages that we never touch
	 * cost nothing.
	 */
	c = calloc(1, sizeof(*c) + bytes);
	if (c)
		c->bytes = bytes;
	return c;
}

/*
 * Gives a large block a chunk of its own. We link this chunk behind the newest chunk, because the
 * newest chunk must keep serving small blocks from its free rest.
 */
static void *alloc_separately(struct cw_arena *a, size_t bytes, bool *ret_is_dirty)
{
	struct cw_arena_chunk *c = chunk_new(a, bytes);

	if (!c)
		return NULL;
	*ret_is_dirty = c->is_dirty;
	if (a->chunks) {
		c->next = a->chunks->next;
		a->chunks->next = c;
	} else {
		a->chunks = c;
	}
	return c->data;
}

static int add_chunk(struct cw_arena *a)
{
	size_t bytes = a->chunk_bytes ? a->chunk_bytes : FIRST_CHUNK_BYTES;
	struct cw_arena_chunk *c = chunk_new(a, bytes);

	if (!c)
		return -1;
	c->next = a->chunks;
	a->chunks = c;
	a->free_bytes = c->bytes;
	if (bytes < LARGEST_CHUNK_BYTES)
		a->chunk_bytes = bytes * 2;
	else
		a->chunk_bytes = bytes;
	return 0;
}

static void *alloc(struct cw_arena *a, size_t n, size_t size, bool *ret_is_dirty)
{
	struct cw_arena_chunk *c;
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	if (!bytes)
		bytes = 1;
	bytes = (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	if (bytes > a->free_bytes) {
		if (bytes > (a->chunk_bytes ? a->chunk_bytes : FIRST_CHUNK_BYTES) / 4)
			return alloc_separately(a, bytes, ret_is_dirty);
		if (add_chunk(a) < 0)
			return NULL;
	}
	c = a->chunks;
	a->free_bytes -= bytes;
	*ret_is_dirty = c->is_dirty;
	return c->data + (c->bytes - a->free_bytes - bytes);
}

void *cw_arena_array(struct cw_arena *a, size_t n, size_t size)
{
	bool is_dirty;
	void *p = alloc(a, n, size, &is_dirty);

	if (p && is_dirty)
		/*
		 * We zero each block when we hand it out, because the caller writes it next and it
		 * is then in the CPU cache.
		 */
		memset(p, 0, n * size);
	return p;
}

void *cw_arena_array_raw(struct cw_arena *a, size_t n, size_t size)
{
	bool is_dirty;

	return alloc(a, n, size, &is_dirty);
}

void *cw_arena_memdup(struct cw_arena *a, const void *from, size_t n, size_t size)
{
	void *to;

	if (!from)
		return NULL;
	to = cw_arena_array_raw(a, n, size);
	if (to && n && size)
		memcpy(to, from, n * size);
	return to;
}

char *cw_arena_strdup(struct cw_arena *a, const char *text)
{
	return text ? cw_arena_memdup(a, text, strlen(text) + 1, 1) : NULL;
}

static void free_chunks(struct cw_arena_chunk *c)
{
	struct cw_arena_chunk *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
}

void cw_arena_reset(struct cw_arena *a)
{
	struct cw_arena_chunk **link = &a->spare, *c;

	while ((c = *link)) {
		if (++c->unused_rounds < SPARE_ROUNDS) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		free(c);
	}
	*link = a->chunks;
	a->chunks = NULL;
	a->free_bytes = a->chunk_bytes = 0;
}

void cw_arena_fini(struct cw_arena *a)
{
	free_chunks(a->chunks);
	free_chunks(a->spare);
	*a = (struct cw_arena){ 0 };
}
