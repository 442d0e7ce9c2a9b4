/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/messages/messages.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "proto/codec.h"
#include "proto/codec_map.h"
#include "proto/frame.h"

#define BODY_OFFSET offsetof(struct cw_message, agent_hello)

static void *must_alloc(struct cw_message_memory *memory, size_t n, size_t bytes)
{
	void *p = cw_message_memory_calloc(memory, n, bytes);

	if (!p)
		abort();
	return p;
}

/* Returns a small, large or extreme number. */
static uint64_t random_number(unsigned *seed)
{
	uint64_t v = (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed) << 11 ^
		     (uint64_t)rand_r(seed);

	switch (rand_r(seed) % 5) {
	case 0:
		return v % 10;
	case 1:
		return UINT64_MAX - v % 10;
	case 2:
		return 0;
	default:
		return v;
	}
}

static const char *random_text(struct cw_message_memory *memory, unsigned *seed)
{
	static const char *const pieces[] = { "a", "node-", "é", "漢", "\t", "\n", "{}", "😀" };
	size_t n = (size_t)rand_r(seed) % 12;
	char *text = must_alloc(memory, n + 1, 4);

	while (n--)
		strcat(text, pieces[(size_t)rand_r(seed) % (sizeof(pieces) / sizeof(pieces[0]))]);
	return text;
}

static void fill_struct(struct cw_message_memory *memory, const struct cw_map *map, char *c,
			unsigned *seed);

static void fill_array(struct cw_message_memory *memory, const struct cw_field *f, char *c,
		       unsigned *seed)
{
	uint32_t n = (uint32_t)rand_r(seed) % 4;
	void **to = (void **)(c + f->c_offset);

	*(uint32_t *)(c + f->c_n_offset) = n;
	if (n == 0)
		return;
	if (f->kind == CW_FIELD_LIST) {
		char *list = *to = must_alloc(memory, n, f->sub->c_bytes);

		for (uint32_t i = 0; i < n; i++)
			fill_struct(memory, f->sub, list + i * f->sub->c_bytes, seed);
	} else if (f->kind == CW_FIELD_STRINGS) {
		const char **list = *to = must_alloc(memory, n, sizeof(*list));

		for (uint32_t i = 0; i < n; i++)
			list[i] = random_text(memory, seed);
	} else {
		uint64_t *list = *to = must_alloc(memory, n, sizeof(*list));

		for (uint32_t i = 0; i < n; i++)
			list[i] = random_number(seed);
	}
}

static void fill_field(struct cw_message_memory *memory, const struct cw_field *f, char *c,
		       unsigned *seed)
{
	char *to = c + f->c_offset;
	uint64_t v = random_number(seed);

	switch (f->kind) {
	case CW_FIELD_UINT:
	case CW_FIELD_INT:
		if (f->flags & CW_FIELD_KNOWN_ONLY)
			v %= f->max + 1ull;
		memcpy(to, &v, f->c_bytes); /* little-endian: the low bytes */
		break;
	case CW_FIELD_STRING:
		*(const char **)to = random_text(memory, seed);
		break;
	case CW_FIELD_JOB_KEY:
		for (unsigned i = 0; i < CW_JOB_KEY_BYTES; i++)
			to[i] = v & 1 ? (char)rand_r(seed) : 0;
		break;
	case CW_FIELD_MESSAGE:
		if (rand_r(seed) % 3 == 0)
			break;
		*(void **)to = must_alloc(memory, 1, f->sub->c_bytes);
		fill_struct(memory, f->sub, *(char **)to, seed);
		break;
	default:
		fill_array(memory, f, c, seed);
	}
}

static void fill_struct(struct cw_message_memory *memory, const struct cw_map *map, char *c,
			unsigned *seed)
{
	for (size_t i = 0; i < map->n_fields; i++)
		fill_field(memory, &map->fields[i], c, seed);
}

struct cw_message *cw_random_message(struct cw_message_memory *memory, unsigned type,
				     unsigned *seed)
{
	struct cw_message *msg = must_alloc(memory, 1, sizeof(*msg));

	msg->type = type;
	fill_struct(memory, cw_bodies[type].map, (char *)msg + BODY_OFFSET, seed);
	return msg;
}

static bool struct_is_equal(const struct cw_map *map, const char *a, const char *b);

static bool text_is_equal(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool array_is_equal(const struct cw_field *f, const char *a, const char *b)
{
	uint32_t n = *(const uint32_t *)(a + f->c_n_offset);
	const char *x = *(char *const *)(a + f->c_offset), *y = *(char *const *)(b + f->c_offset);

	if (n != *(const uint32_t *)(b + f->c_n_offset))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (f->kind == CW_FIELD_LIST &&
		    !struct_is_equal(f->sub, x + i * f->sub->c_bytes, y + i * f->sub->c_bytes))
			return false;
		if (f->kind == CW_FIELD_STRINGS &&
		    !text_is_equal(((const char *const *)x)[i], ((const char *const *)y)[i]))
			return false;
		if (f->kind == CW_FIELD_U64S &&
		    ((const uint64_t *)x)[i] != ((const uint64_t *)y)[i])
			return false;
	}
	return true;
}

/* Returns an age as the decoder would store it. */
static int64_t age_at(const void *p)
{
	int64_t age_ns;

	memcpy(&age_ns, p, sizeof(age_ns));
	return cw_bounded_ns(age_ns);
}

static bool field_is_equal(const struct cw_field *f, const char *a, const char *b)
{
	const void *x = a + f->c_offset, *y = b + f->c_offset;

	switch (f->kind) {
	case CW_FIELD_UINT:
	case CW_FIELD_INT:
		if (f->flags & CW_FIELD_AGE)
			return age_at(x) == age_at(y);
		return memcmp(x, y, f->c_bytes) == 0;
	case CW_FIELD_STRING:
		return text_is_equal(*(const char *const *)x, *(const char *const *)y);
	case CW_FIELD_JOB_KEY:
		return cw_job_key_is_equal(x, y);
	case CW_FIELD_MESSAGE:
		x = *(const void *const *)x;
		y = *(const void *const *)y;
		return (!x && !y) || (x && y && struct_is_equal(f->sub, x, y));
	default:
		return array_is_equal(f, a, b);
	}
}

static bool struct_is_equal(const struct cw_map *map, const char *a, const char *b)
{
	for (size_t i = 0; i < map->n_fields; i++)
		if (!field_is_equal(&map->fields[i], a, b))
			return false;
	return true;
}

bool cw_message_is_equal(const struct cw_message *a, const struct cw_message *b)
{
	return a->type == b->type &&
	       struct_is_equal(cw_bodies[a->type].map, (const char *)a + BODY_OFFSET,
			       (const char *)b + BODY_OFFSET);
}

struct cw_message *cw_message_of_frame(const uint8_t *frame, size_t len)
{
	struct cw_message *msg = NULL;

	if (len < CW_FRAME_HEADER_BYTES ||
	    cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &msg) < 0)
		abort();
	return msg;
}
