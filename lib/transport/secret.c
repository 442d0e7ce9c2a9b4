/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We cut blocks from larger chunks of mapped memory. A block's size is a power of two, and its
 * header states the size. A freed block goes to the list of free blocks of its size. We map and
 * unmap very large blocks individually.
 *
 * MADV_WIPEONFORK (Linux 4.14) makes a child see zeros. On a kernel without it we return NULL,
 * because children could read the secrets.
 */
#include "transport/secret.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define SMALLEST_LOG 6u
#define LARGEST_LOG 16u
#define CHUNK_BYTES ((size_t)256 << 10)

/* A block's data has the same alignment as with malloc(). */
struct header {
	/* Size including the header; 0 = this is a child, and the fork wiped it. */
	_Alignas(16) size_t bytes;
};

static struct header *free_blocks[LARGEST_LOG + 1];
static char *chunk;
static size_t chunk_left;

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, bytes, MADV_WIPEONFORK) < 0) {
		(void)munmap(p, bytes);
		return NULL;
	}
	/* May fail: the systemd unit forbids core dumps anyway. */
	(void)madvise(p, bytes, MADV_DONTDUMP);
	return p;
}

static unsigned log_of(size_t bytes)
{
	unsigned log = SMALLEST_LOG;

	while (((size_t)1 << log) < bytes)
		log++;
	return log;
}

static struct header *cut(size_t bytes)
{
	struct header *h;

	if (chunk_left < bytes) {
		/* We waste the rest of the old chunk, which is less than one block. */
		chunk = map(CHUNK_BYTES);
		chunk_left = chunk ? CHUNK_BYTES : 0;
	}
	if (!chunk)
		return NULL;
	h = (struct header *)chunk;
	chunk += bytes;
	chunk_left -= bytes;
	return h;
}

static struct header *take(unsigned log)
{
	struct header *h = free_blocks[log];

	if (!h)
		return cut((size_t)1 << log);
	/* The first bytes of a free block hold the address of the next free block. */
	/* cppcheck-suppress pointerSize ; a pointer is what is copied */
	memcpy(&free_blocks[log], h + 1, sizeof(void *));
	explicit_bzero(h + 1, sizeof(void *));
	return h;
}

void *cw_secret_malloc(size_t size)
{
	size_t bytes = size + sizeof(struct header);
	struct header *h;

	if (size > SIZE_MAX / 2)
		return NULL;
	if (bytes <= (size_t)1 << LARGEST_LOG) {
		bytes = (size_t)1 << log_of(bytes);
		h = take(log_of(bytes));
	} else {
		h = map(bytes);
	}
	if (!h)
		return NULL;
	h->bytes = bytes;
	return h + 1;
}

/* Unused memory of this allocator is always zero, so we need no memset(). */
void *cw_secret_calloc(size_t n, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(n, size, &bytes) ? NULL : cw_secret_malloc(bytes);
}

void cw_secret_free(void *p)
{
	struct header *h = p ? (struct header *)p - 1 : NULL;
	unsigned log;

	if (!h || !h->bytes)
		return;
	if (h->bytes > (size_t)1 << LARGEST_LOG) {
		(void)munmap(h, h->bytes);
		return;
	}
	log = log_of(h->bytes);
	explicit_bzero(p, h->bytes - sizeof(*h));
	memcpy(p, &free_blocks[log], sizeof(void *));
	free_blocks[log] = h;
}

void *cw_secret_realloc(void *p, size_t size)
{
	size_t held = p ? ((struct header *)p - 1)->bytes : 0;
	void *larger;

	held -= held ? sizeof(struct header) : 0;
	if (p && size <= held)
		return p;
	larger = cw_secret_malloc(size);
	if (larger && p) {
		memcpy(larger, p, held);
		cw_secret_free(p);
	}
	return larger;
}

/*
 * Copies byte by byte. strlen() and memcpy() would leave the text in vector registers. A signal or
 * the loader's next symbol lookup copies these registers to the stack, which children inherit.
 */
char *cw_secret_strdup(const char *text)
{
	const volatile char *from = text;
	size_t len = 0;
	char *copy;

	while (from[len])
		len++;
	copy = cw_secret_malloc(len + 1);
	for (volatile char *to = copy; to && len; len--)
		*to++ = *from++;
	return copy; /* new memory is zero, so the text is terminated */
}
