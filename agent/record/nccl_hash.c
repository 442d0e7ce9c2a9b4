/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes NCCL's hash as NCCL's src/include/bitops.h (eatHash, digestHash, getHash) and
 * src/init.cc define it. The definition is the same from 2.26.2 to 2.30.7. 2.23.4 and 2.24.3 use a
 * hash after Bernstein.
 */
#include "agent/record/nccl_hash.h"

#include <stddef.h>
#include <string.h>

struct state {
	uint64_t a, b;
};

static void eat(struct state *s, const void *bytes, size_t n)
{
	const char *at = bytes;

	for (s->a ^= n; n;) {
		size_t part = n < sizeof(uint64_t) ? n : sizeof(uint64_t);
		uint64_t word = 0;

		s->a += s->b;
		s->b ^= s->a;
		s->a = (s->a ^ s->a >> 31) * UINT64_C(0x9de62bbc8cef3ce3);
		s->b = (s->b ^ s->b >> 32) * UINT64_C(0x485cd6311b599e79);
		memcpy(&word, at, part);
		s->a += word;
		at += part;
		n -= part;
	}
}

static uint64_t digest(const struct state *s)
{
	uint64_t h = (s->a ^ s->a >> 31) * UINT64_C(0xbac3bd562846de6b) + s->b;

	return (h ^ h >> 32) * UINT64_C(0x995a187a14e7b445);
}

struct cw_nccl_hashes cw_nccl_hash_of(const ncclUniqueId *id)
{
	struct state s = { 1, 1 };
	uint64_t once = 5381;

	eat(&s, id->internal, sizeof(id->internal));
	for (size_t i = 0; i < sizeof(id->internal); i++)
		once = once * 33 ^ (uint64_t)(int64_t)id->internal[i];
	return (struct cw_nccl_hashes){ .now = digest(&s), .once = once };
}

uint64_t cw_nccl_hash_of_child(uint64_t parent, int count, int color)
{
	struct state s = { 1, 1 };

	eat(&s, &parent, sizeof(parent));
	eat(&s, &count, sizeof(count));
	eat(&s, &color, sizeof(color));
	return digest(&s);
}
