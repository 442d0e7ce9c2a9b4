/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes a message in two steps. By the tables of codec_map.c we convert struct cw_message to the
 * generated structs (in memory of their own). protobuf-c then packs these into bytes. decode.c is
 * the inverse. Encoder and decoder enforce the limits of proto/messages.h, so no sender sends a
 * message that receivers refuse.
 *
 * The first step also adds up the largest possible size. If a frame holds that size, we pack
 * without measuring first. protobuf-c would visit every field once more to measure.
 */
#include "proto/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collwatch.pb-c.h"
#include "common/cleanup.h"
#include "proto/codec_map.h"
#include "proto/frame.h"
#include "proto/message_memory.h"

/* In struct cw_message and in the envelope, all members of the union have the same offset. */
#define BODY_OFFSET offsetof(struct cw_message, agent_hello)
#define PB_BODY_OFFSET offsetof(Collwatch__Envelope, agent_hello)
/*
 * Limit of a field's size without the bytes of a string. A field takes a tag of at most two bytes,
 * and a number or length of at most ten.
 */
#define FIELD_MAX_BYTES 12u
#define ENVELOPE_MAX_BYTES (2 * FIELD_MAX_BYTES)

struct encoder {
	struct cw_message_memory *memory;
	size_t max_bytes; /* largest possible packed size of the converted parts */
};

static void memory_freep(struct cw_message_memory **memory)
{
	cw_message_memory_free(*memory);
}

/*
 * Returns the error of a failed allocation: too_big if the message reached its memory limit, else
 * -ENOMEM.
 */
static int alloc_error(const struct cw_message_memory *memory, int too_big)
{
	return memory->is_exceeded ? too_big : -ENOMEM;
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

/* ---- encoding ---- */

static int encode_struct(struct encoder *e, const struct cw_map *map, const void *c,
			 ProtobufCMessage **ret);

static int encode_string(struct encoder *e, const struct cw_field *f, const char *text, char **ret)
{
	size_t len;

	if (!text && (f->flags & CW_FIELD_REQUIRED))
		return -EINVAL;
	if (!text || !*text)
		return 0; /* the field keeps its default, the empty string */
	len = strnlen(text, CW_MSG_MAX_STRING + 1);
	if (len > CW_MSG_MAX_STRING)
		return -EMSGSIZE;
	e->max_bytes += len;
	*ret = (char *)(uintptr_t)text; /* the generated structs are not const-correct */
	return 0;
}

/* Encodes the key. An absent key keeps the default of its field, no bytes. */
static int encode_job_key(struct encoder *e, const struct cw_job_key *key, ProtobufCBinaryData *ret)
{
	if (!cw_job_key_is_set(key))
		return 0;
	*ret = (ProtobufCBinaryData){ .len = sizeof(key->bytes),
				      .data = (uint8_t *)(uintptr_t)key->bytes };
	e->max_bytes += sizeof(key->bytes);
	return 0;
}

static int encode_strings(struct encoder *e, const struct cw_field *f, const char **texts, size_t n,
			  char ***ret)
{
	static const struct cw_field element = { .flags = CW_FIELD_REQUIRED };
	char **list = cw_message_memory_calloc(e->memory, n, sizeof(*list));
	int r;

	if (!list)
		return alloc_error(e->memory, -EMSGSIZE);
	e->max_bytes += n * FIELD_MAX_BYTES;
	for (size_t i = 0; i < n; i++) {
		list[i] = (char *)(uintptr_t)protobuf_c_empty_string;
		r = encode_string(e, &element, texts[i], &list[i]);
		if (r < 0)
			return r;
	}
	*ret = list;
	return 0;
}

static int encode_list(struct encoder *e, const struct cw_field *f, const char *elements, size_t n,
		       ProtobufCMessage ***ret)
{
	ProtobufCMessage **list = cw_message_memory_calloc(e->memory, n, sizeof(*list));
	int r;

	if (!list)
		return alloc_error(e->memory, -EMSGSIZE);
	e->max_bytes += n * FIELD_MAX_BYTES;
	for (size_t i = 0; i < n; i++) {
		r = encode_struct(e, f->sub, elements + i * f->sub->c_bytes, &list[i]);
		if (r < 0)
			return r;
	}
	*ret = list;
	return 0;
}

static int encode_array(struct encoder *e, const struct cw_field *f, const char *c, char *pb)
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
		return encode_strings(e, f, elements, n, to);
	if (f->kind == CW_FIELD_LIST)
		return encode_list(e, f, elements, n, to);
	/* Both structs store arrays of numbers alike, so the generated struct borrows our array. */
	*(void **)to = elements;
	e->max_bytes += n * FIELD_MAX_BYTES; /* enough for packed and for unpacked numbers */
	return 0;
}

static int encode_field(struct encoder *e, const struct cw_field *f, const char *c, char *pb)
{
	const void *from = c + f->c_offset;
	void *to = pb + f->pb_offset;
	const void *sub;

	switch (f->kind) {
	case CW_FIELD_UINT:
		cw_field_store(to, f->pb_bytes, load_uint(from, f->c_bytes));
		return 0;
	case CW_FIELD_INT:
		cw_field_store(to, f->pb_bytes, (uint64_t)load_int(from, f->c_bytes));
		return 0;
	case CW_FIELD_STRING:
		return encode_string(e, f, *(const char *const *)from, to);
	case CW_FIELD_JOB_KEY:
		return encode_job_key(e, from, to);
	case CW_FIELD_MESSAGE:
		sub = *(const void *const *)from;
		return sub ? encode_struct(e, f->sub, sub, to) : 0;
	default:
		return encode_array(e, f, c, pb);
	}
}

static int encode_struct(struct encoder *e, const struct cw_map *map, const void *c,
			 ProtobufCMessage **ret)
{
	ProtobufCMessage *pb = cw_message_memory_alloc(e->memory, map->pb->sizeof_message);
	int r;

	if (!pb)
		return alloc_error(e->memory, -EMSGSIZE);
	map->pb->message_init(pb);
	e->max_bytes += (size_t)map->n_fields * FIELD_MAX_BYTES;
	for (size_t i = 0; i < map->n_fields; i++) {
		r = encode_field(e, &map->fields[i], c, (char *)pb);
		if (r < 0)
			return r;
	}
	*ret = pb;
	return 0;
}

/* Packs the envelope into a fresh buffer. max_bytes is an upper limit of the packed size. */
static int pack(const Collwatch__Envelope *envelope, size_t max_bytes, uint8_t **ret_buf,
		size_t *ret_len)
{
	uint8_t *buf, *shrunk;
	size_t len;

	if (max_bytes > CW_FRAME_MAX_BYTES)
		max_bytes = collwatch__envelope__get_packed_size(envelope);
	if (max_bytes > CW_FRAME_MAX_BYTES)
		return -EMSGSIZE;
	buf = malloc(CW_FRAME_HEADER_BYTES + max_bytes);
	if (!buf)
		return -ENOMEM;
	len = collwatch__envelope__pack(envelope, buf + CW_FRAME_HEADER_BYTES);
	(void)cw_frame_header(len, buf); /* cannot fail: 0 < len <= CW_FRAME_MAX_BYTES */
	/*
	 * Return unused memory. The buffer may wait in a queue for long, and the queue counts its
	 * real length.
	 */
	shrunk = realloc(buf, CW_FRAME_HEADER_BYTES + len);
	if (shrunk)
		buf = shrunk;
	*ret_buf = buf;
	*ret_len = CW_FRAME_HEADER_BYTES + len;
	return 0;
}

int cw_message_encode(const struct cw_message *msg, uint8_t **ret_buf, size_t *ret_len)
{
	_cleanup_(memory_freep) struct cw_message_memory *memory = NULL;
	Collwatch__Envelope envelope = COLLWATCH__ENVELOPE__INIT;
	struct encoder e = { .max_bytes = ENVELOPE_MAX_BYTES };
	int r;

	if (msg->type == CW_MSG_NONE || msg->type >= CW_MSG__MAX)
		return -EINVAL;
	memory = cw_message_memory_new(CW_CODEC_MAX_MEMORY, 0);
	if (!memory)
		return -ENOMEM;
	envelope.version = CW_WIRE_VERSION;
	envelope.body_case = (Collwatch__Envelope__BodyCase)cw_bodies[msg->type].number;
	e.memory = memory;
	r = encode_struct(&e, cw_bodies[msg->type].map, (const char *)msg + BODY_OFFSET,
			  (ProtobufCMessage **)((char *)&envelope + PB_BODY_OFFSET));
	if (r < 0)
		return r;
	return pack(&envelope, e.max_bytes, ret_buf, ret_len);
}

/* The tag of the body follows the tag and the value of the version, which have a byte each. */
void cw_message_set_digest_type(uint8_t *frame, uint32_t type)
{
	uint32_t tag = cw_bodies[type].number << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;

	frame[CW_FRAME_HEADER_BYTES + 2] = (uint8_t)(tag | 0x80);
	frame[CW_FRAME_HEADER_BYTES + 3] = (uint8_t)(tag >> 7);
}

const char *cw_message_name(unsigned type)
{
	return type < CW_MSG__MAX ? cw_bodies[type].name : "unknown";
}
