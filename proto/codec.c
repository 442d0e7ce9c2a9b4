/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the tables of codec_map.c in either direction:
 *
 *	encode: struct cw_message -> generated structs (in an arena) -> bytes
 *	decode: bytes -> generated structs (protobuf-c, in the message's arena) -> struct cw_message
 *
 * A decoded message and everything it points to lie in one arena, the generated structs included:
 * strings are not copied a second time. Both directions enforce the limits of proto/messages.h, so
 * that nobody sends what no receiver takes. Recursion is as deep as the nesting of the tables
 *(five), never as deep as the input says: no message contains itself.
 */
#include "proto/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collwatch.pb-c.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "proto/arena.h"
#include "proto/codec_map.h"
#include "proto/frame.h"

/* Every member of either union lies at the same place. */
#define BODY_OFFSET offsetof(struct cw_message, agent_hello)
#define PB_BODY_OFFSET offsetof(Collwatch__Envelope, agent_hello)

static void arena_freep(struct cw_arena **arena)
{
	cw_arena_free(*arena);
}

/* A failed allocation: because of the cap (the caller's code for "too big") or of the machine. */
static int alloc_error(const struct cw_arena *arena, int too_big)
{
	return arena->is_exceeded ? too_big : -ENOMEM;
}

static uint64_t load_uint(const void *p, size_t bytes)
{
	switch (bytes) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		return *(const uint16_t *)p;
	case 4:
		return *(const uint32_t *)p;
	default:
		return *(const uint64_t *)p;
	}
}

static int64_t load_int(const void *p, size_t bytes)
{
	switch (bytes) {
	case 2:
		return *(const int16_t *)p;
	case 4:
		return *(const int32_t *)p;
	default:
		return *(const int64_t *)p;
	}
}

/* Stores the low bytes; two's complement makes this right for signed numbers as well. */
static void store(void *p, size_t bytes, uint64_t v)
{
	switch (bytes) {
	case 1:
		*(uint8_t *)p = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)p = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)p = (uint32_t)v;
		break;
	default:
		*(uint64_t *)p = v;
		break;
	}
}

/* ---- encoding ---- */

static int encode_struct(struct cw_arena *arena, const struct cw_map *map, const void *c,
			 ProtobufCMessage **ret);

static int encode_string(const struct cw_field *f, const char *text, char **ret)
{
	if (!text && (f->flags & CW_FIELD_REQUIRED))
		return -EINVAL;
	if (!text)
		return 0; /* keeps the default, the empty string */
	if (strnlen(text, CW_MSG_MAX_STRING + 1) > CW_MSG_MAX_STRING)
		return -EMSGSIZE;
	*ret = (char *)(uintptr_t)text; /* the generated structs are not const-correct */
	return 0;
}

static int encode_strings(struct cw_arena *arena, const struct cw_field *f, const char **texts,
			  size_t n, char ***ret)
{
	static const struct cw_field element = { .flags = CW_FIELD_REQUIRED };
	char **list = cw_arena_calloc(arena, n, sizeof(*list));
	int r;

	if (!list)
		return alloc_error(arena, -EMSGSIZE);
	for (size_t i = 0; i < n; i++) {
		r = encode_string(&element, texts[i], &list[i]);
		if (r < 0)
			return r;
	}
	*ret = list;
	return 0;
}

static int encode_list(struct cw_arena *arena, const struct cw_field *f, const char *elements,
		       size_t n, ProtobufCMessage ***ret)
{
	ProtobufCMessage **list = cw_arena_calloc(arena, n, sizeof(*list));
	int r;

	if (!list)
		return alloc_error(arena, -EMSGSIZE);
	for (size_t i = 0; i < n; i++) {
		r = encode_struct(arena, f->sub, elements + i * f->sub->c_bytes, &list[i]);
		if (r < 0)
			return r;
	}
	*ret = list;
	return 0;
}

static int encode_array(struct cw_arena *arena, const struct cw_field *f, const char *c, char *pb)
{
	size_t n = *(const uint32_t *)(c + f->c_n_offset);
	void *elements = *(void *const *)(c + f->c_offset);
	void *to = pb + f->pb_offset;

	if (n == 0)
		return 0;
	if (n > f->max)
		return -EMSGSIZE;
	if (!elements)
		return -EINVAL;
	*(size_t *)(pb + f->pb_n_offset) = n;
	if (f->kind == CW_FIELD_STRINGS)
		return encode_strings(arena, f, elements, n, to);
	if (f->kind == CW_FIELD_LIST)
		return encode_list(arena, f, elements, n, to);
	*(void **)to = elements; /* numbers: same representation, borrowed */
	return 0;
}

static int encode_field(struct cw_arena *arena, const struct cw_field *f, const char *c, char *pb)
{
	const void *from = c + f->c_offset;
	void *to = pb + f->pb_offset;
	const void *sub;

	switch (f->kind) {
	case CW_FIELD_UINT:
		store(to, f->pb_bytes, load_uint(from, f->c_bytes));
		return 0;
	case CW_FIELD_INT:
		store(to, f->pb_bytes, (uint64_t)load_int(from, f->c_bytes));
		return 0;
	case CW_FIELD_STRING:
		return encode_string(f, *(const char *const *)from, to);
	case CW_FIELD_MESSAGE:
		sub = *(const void *const *)from;
		return sub ? encode_struct(arena, f->sub, sub, to) : 0;
	default:
		return encode_array(arena, f, c, pb);
	}
}

static int encode_struct(struct cw_arena *arena, const struct cw_map *map, const void *c,
			 ProtobufCMessage **ret)
{
	ProtobufCMessage *pb = cw_arena_alloc(arena, map->pb->sizeof_message);
	int r;

	if (!pb)
		return alloc_error(arena, -EMSGSIZE);
	map->pb->message_init(pb);
	for (size_t i = 0; i < map->n_fields; i++) {
		r = encode_field(arena, &map->fields[i], c, (char *)pb);
		if (r < 0)
			return r;
	}
	*ret = pb;
	return 0;
}

static int pack(const Collwatch__Envelope *envelope, uint8_t **ret_buf, size_t *ret_len)
{
	size_t len = collwatch__envelope__get_packed_size(envelope);
	uint8_t *buf;

	if (len > CW_FRAME_MAX_BYTES)
		return -EMSGSIZE;
	buf = malloc(CW_FRAME_HEADER_BYTES + len);
	if (!buf)
		return -ENOMEM;
	(void)cw_frame_header(len, buf); /* 0 < len <= CW_FRAME_MAX_BYTES */
	collwatch__envelope__pack(envelope, buf + CW_FRAME_HEADER_BYTES);
	*ret_buf = buf;
	*ret_len = CW_FRAME_HEADER_BYTES + len;
	return 0;
}

int cw_message_encode(const struct cw_message *msg, uint8_t **ret_buf, size_t *ret_len)
{
	_cleanup_(arena_freep) struct cw_arena *arena = NULL;
	Collwatch__Envelope envelope = COLLWATCH__ENVELOPE__INIT;
	int r;

	if (msg->type == CW_MSG_NONE || msg->type >= CW_MSG__MAX)
		return -EINVAL;
	arena = cw_arena_new(CW_CODEC_MAX_ARENA, 0);
	if (!arena)
		return -ENOMEM;
	envelope.version = CW_WIRE_VERSION;
	envelope.body_case = (Collwatch__Envelope__BodyCase)cw_bodies[msg->type].number;
	r = encode_struct(arena, cw_bodies[msg->type].map, (const char *)msg + BODY_OFFSET,
			  (ProtobufCMessage **)((char *)&envelope + PB_BODY_OFFSET));
	if (r < 0)
		return r;
	return pack(&envelope, ret_buf, ret_len);
}

/* ---- decoding ---- */

static int decode_struct(struct cw_arena *arena, const struct cw_map *map, const void *pb, void *c);

static int decode_uint(const struct cw_field *f, const void *from, void *to)
{
	uint64_t v = load_uint(from, f->pb_bytes);

	if ((f->flags & CW_FIELD_KNOWN_ONLY) && v > f->max)
		v = 0;
	store(to, f->c_bytes, v);
	return load_uint(to, f->c_bytes) == v ? 0 : -EBADMSG;
}

static int decode_int(const struct cw_field *f, const void *from, void *to)
{
	int64_t v = load_int(from, f->pb_bytes);

	store(to, f->c_bytes, (uint64_t)v);
	return load_int(to, f->c_bytes) == v ? 0 : -EBADMSG;
}

static int decode_string(char *text, const char **ret)
{
	/* protobuf-c's default for an absent string is one constant for all: not to be written */
	if (!text || !*text) {
		*ret = "";
		return 0;
	}
	if (strlen(text) > CW_MSG_MAX_STRING)
		return -EBADMSG;
	cw_text_sanitise(text);
	*ret = text;
	return 0;
}

static int decode_message(struct cw_arena *arena, const struct cw_field *f, const void *pb,
			  void **ret)
{
	void *c;

	if (!pb)
		return 0;
	c = cw_arena_alloc(arena, f->sub->c_bytes);
	if (!c)
		return alloc_error(arena, -EBADMSG);
	*ret = c;
	return decode_struct(arena, f->sub, pb, c);
}

static int decode_list(struct cw_arena *arena, const struct cw_field *f,
		       ProtobufCMessage *const *list, size_t n, void **ret)
{
	char *elements = cw_arena_calloc(arena, n, f->sub->c_bytes);
	int r;

	if (!elements)
		return alloc_error(arena, -EBADMSG);
	for (size_t i = 0; i < n; i++) {
		r = decode_struct(arena, f->sub, list[i], elements + i * f->sub->c_bytes);
		if (r < 0)
			return r;
	}
	*ret = elements;
	return 0;
}

static int decode_strings(char **texts, size_t n)
{
	const char *safe;
	int r;

	for (size_t i = 0; i < n; i++) {
		r = decode_string(texts[i], &safe);
		if (r < 0)
			return r;
		texts[i] = (char *)(uintptr_t)safe;
	}
	return 0;
}

static int decode_array(struct cw_arena *arena, const struct cw_field *f, const char *pb, char *c)
{
	size_t n = *(const size_t *)(pb + f->pb_n_offset);
	void *list = *(void *const *)(pb + f->pb_offset);
	void *to = c + f->c_offset;

	if (n > f->max)
		return -EBADMSG;
	*(uint32_t *)(c + f->c_n_offset) = (uint32_t)n;
	if (n == 0)
		return 0;
	if (f->kind == CW_FIELD_LIST)
		return decode_list(arena, f, list, n, to);
	*(void **)to = list; /* strings and numbers stay where protobuf-c put them: in the arena */
	return f->kind == CW_FIELD_STRINGS ? decode_strings(list, n) : 0;
}

static int decode_field(struct cw_arena *arena, const struct cw_field *f, const char *pb, char *c)
{
	const void *from = pb + f->pb_offset;
	void *to = c + f->c_offset;

	switch (f->kind) {
	case CW_FIELD_UINT:
		return decode_uint(f, from, to);
	case CW_FIELD_INT:
		return decode_int(f, from, to);
	case CW_FIELD_STRING:
		return decode_string(*(char *const *)from, to);
	case CW_FIELD_MESSAGE:
		return decode_message(arena, f, *(void *const *)from, to);
	default:
		return decode_array(arena, f, pb, c);
	}
}

static int decode_struct(struct cw_arena *arena, const struct cw_map *map, const void *pb, void *c)
{
	int r;

	for (size_t i = 0; i < map->n_fields; i++) {
		r = decode_field(arena, &map->fields[i], pb, c);
		if (r < 0)
			return r;
	}
	return 0;
}

static void *on_alloc(void *user, size_t size)
{
	return cw_arena_alloc(user, size);
}

static void on_free(void *user, void *p)
{
	/* Released with the arena; what protobuf-c frees in between still counts for the cap. */
}

static uint32_t type_of(uint32_t number)
{
	for (uint32_t type = CW_MSG_NONE + 1; type < CW_MSG__MAX; type++)
		if (cw_bodies[type].number == number)
			return type;
	return CW_MSG_NONE;
}

int cw_message_decode(const uint8_t *payload, size_t len, struct cw_message **ret_msg)
{
	_cleanup_(arena_freep) struct cw_arena *arena = NULL;
	ProtobufCAllocator allocator = { .alloc = on_alloc, .free = on_free };
	Collwatch__Envelope *envelope;
	struct cw_message *msg;
	int r;

	/* Structs take some times the room of their bytes; strings as much. */
	arena = cw_arena_new(CW_CODEC_MAX_ARENA, sizeof(*msg) + len * 4);
	if (!arena)
		return -ENOMEM;
	allocator.allocator_data = arena;
	msg = cw_arena_alloc(arena, sizeof(*msg));
	envelope = collwatch__envelope__unpack(&allocator, len, payload);
	if (!msg || !envelope) /* protobuf-c does not say why */
		return arena->is_out_of_memory ? -ENOMEM : -EBADMSG;
	msg->version = envelope->version;
	msg->type = type_of(envelope->body_case);
	if (msg->type != CW_MSG_NONE) {
		r = decode_struct(arena, cw_bodies[msg->type].map,
				  *(void **)((char *)envelope + PB_BODY_OFFSET),
				  (char *)msg + BODY_OFFSET);
		if (r < 0)
			return r;
	}
	msg->arena = steal_ptr(&arena);
	*ret_msg = msg;
	return 0;
}

struct cw_message *cw_message_free(struct cw_message *msg)
{
	if (msg)
		cw_arena_free(msg->arena);
	return NULL;
}

const char *cw_message_name(unsigned type)
{
	return type < CW_MSG__MAX ? cw_bodies[type].name : "unknown";
}
