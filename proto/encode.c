/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding: one walk over the tables of codec_map.c, by protobuf-c's descriptors, from the last
 * field to the first into a buffer that is filled from its end. So the length of a part is known
 * when it is written, and nothing is measured beforehand or laid out in generated structs: a daemon
 * does this once a second for every job it has ranks of. decode.c goes the other way. Both enforce
 * the limits of proto/messages.h, so that nobody sends what no receiver takes.
 *
 * The bytes are those that protobuf-c's own encoder makes: numbers ascending, and nothing where a
 * field has its default.
 */
#include "proto/codec.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collwatch.pb-c.h"
#include "proto/codec_map.h"
#include "proto/frame.h"

/* Every member of the union lies at the same place. */
#define BODY_OFFSET offsetof(struct cw_message, agent_hello)
#define VERSION_FIELD 1u
#define MAX_BYTES (CW_FRAME_HEADER_BYTES + CW_FRAME_MAX_BYTES)
/* Most messages fit; for a digest of eight busy ranks, 35 KiB, it is doubled seven times. */
#define FIRST_BYTES 512u

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

/* The last `used` bytes of `bytes` are written. */
struct output {
	uint8_t *bytes;
	size_t used, capacity;
	int error; /* the first; nothing is written any more */
};

static void note_error(struct output *o, int error)
{
	if (!o->error)
		o->error = error;
}

/* ---- bytes ---- */

static bool grow(struct output *o, size_t n)
{
	size_t capacity = o->capacity ? o->capacity * 2 : FIRST_BYTES;
	uint8_t *grown;

	if (n > MAX_BYTES || o->used > MAX_BYTES - n) {
		note_error(o, -EMSGSIZE);
		return false;
	}
	while (capacity - o->used < n)
		capacity *= 2;
	grown = malloc(capacity);
	if (!grown) {
		note_error(o, -ENOMEM);
		return false;
	}
	if (o->used)
		memcpy(grown + capacity - o->used, o->bytes + o->capacity - o->used, o->used);
	free(o->bytes);
	o->bytes = grown;
	o->capacity = capacity;
	return true;
}

/* Room for n bytes before those that are written; NULL: there was an error. */
static inline uint8_t *put(struct output *o, size_t n)
{
	if (o->error || (o->capacity - o->used < n && !grow(o, n)))
		return NULL;
	o->used += n;
	return o->bytes + o->capacity - o->used;
}

static void put_bytes(struct output *o, const void *bytes, size_t n)
{
	uint8_t *to = n ? put(o, n) : NULL;

	if (to)
		memcpy(to, bytes, n);
}

static inline void put_varint(struct output *o, uint64_t v)
{
	unsigned n = 1;
	uint8_t *to;

	for (uint64_t rest = v >> 7; rest; rest >>= 7)
		n++;
	to = put(o, n);
	if (!to)
		return;
	for (; n > 1; n--, v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to = (uint8_t)v;
}

static void put_64(struct output *o, uint64_t v)
{
	v = htole64(v);
	put_bytes(o, &v, sizeof(v));
}

static void put_tag(struct output *o, uint32_t number, enum wire_type type)
{
	put_varint(o, number << 3 | type);
}

/* What was written since `used` was so: its length and its number go before it. */
static void put_length(struct output *o, uint32_t number, size_t used)
{
	put_varint(o, o->used - used);
	put_tag(o, number, WIRE_BYTES);
}

/* ---- numbers ---- */

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

static void encode_uint(struct output *o, const ProtobufCFieldDescriptor *pb, uint64_t v)
{
	if (!v)
		return;
	if (pb->type == PROTOBUF_C_TYPE_FIXED64) {
		put_64(o, v);
		put_tag(o, pb->id, WIRE_64);
	} else {
		put_varint(o, v);
		put_tag(o, pb->id, WIRE_VARINT);
	}
}

/* Zigzag: small ones of either sign are short. */
static void encode_int(struct output *o, const ProtobufCFieldDescriptor *pb, int64_t v)
{
	if (!v)
		return;
	put_varint(o, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
	put_tag(o, pb->id, WIRE_VARINT);
}

/* ---- text, structs and lists ---- */

static void encode_struct(struct output *o, const struct cw_map *map, const char *c);

static void encode_text(struct output *o, uint32_t number, const char *text)
{
	size_t used = o->used, len = strnlen(text, CW_MSG_MAX_STRING + 1);

	if (len > CW_MSG_MAX_STRING)
		note_error(o, -EMSGSIZE);
	put_bytes(o, text, len);
	put_length(o, number, used);
}

static void encode_string(struct output *o, const struct cw_field *f, uint32_t number,
			  const char *text)
{
	if (!text && (f->flags & CW_FIELD_REQUIRED))
		note_error(o, -EINVAL);
	if (text && *text)
		encode_text(o, number, text);
}

static void encode_job_key(struct output *o, uint32_t number, const struct cw_job_key *key)
{
	size_t used = o->used;

	if (!cw_job_key_is_set(key))
		return;
	put_bytes(o, key->bytes, sizeof(key->bytes));
	put_length(o, number, used);
}

static void encode_message(struct output *o, const struct cw_map *map, uint32_t number,
			   const char *c)
{
	size_t used = o->used;

	encode_struct(o, map, c);
	put_length(o, number, used);
}

static void encode_u64s(struct output *o, uint32_t number, const uint64_t *values, size_t n)
{
	size_t used = o->used;

	for (size_t i = n; i-- > 0;)
		put_64(o, values[i]);
	put_length(o, number, used);
}

static void encode_strings(struct output *o, uint32_t number, const char *const *texts, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		if (!texts[i])
			note_error(o, -EINVAL);
		else
			encode_text(o, number, texts[i]);
	}
}

static void encode_list(struct output *o, const struct cw_map *map, uint32_t number,
			const char *elements, size_t n)
{
	for (size_t i = n; i-- > 0 && !o->error;)
		encode_message(o, map, number, elements + i * map->c_bytes);
}

static void encode_array(struct output *o, const struct cw_field *f, uint32_t number, const char *c)
{
	size_t n = *(const uint32_t *)(c + f->c_n_offset);
	const void *elements = *(const void *const *)(c + f->c_offset);

	if (n == 0)
		return;
	if (n > f->max || !elements)
		note_error(o, n > f->max ? -EMSGSIZE : -EINVAL);
	else if (f->kind == CW_FIELD_LIST)
		encode_list(o, f->sub, number, elements, n);
	else if (f->kind == CW_FIELD_STRINGS)
		encode_strings(o, number, elements, n);
	else
		encode_u64s(o, number, elements, n);
}

static void encode_field(struct output *o, const struct cw_field *f,
			 const ProtobufCFieldDescriptor *pb, const char *c)
{
	const void *from = c + f->c_offset;
	const void *sub;

	switch (f->kind) {
	case CW_FIELD_UINT:
		encode_uint(o, pb, load_uint(from, f->c_bytes));
		break;
	case CW_FIELD_INT:
		encode_int(o, pb, load_int(from, f->c_bytes));
		break;
	case CW_FIELD_STRING:
		encode_string(o, f, pb->id, *(const char *const *)from);
		break;
	case CW_FIELD_JOB_KEY:
		encode_job_key(o, pb->id, from);
		break;
	case CW_FIELD_MESSAGE:
		sub = *(const void *const *)from;
		if (sub)
			encode_message(o, f->sub, pb->id, sub);
		break;
	default:
		encode_array(o, f, pb->id, c);
		break;
	}
}

static void encode_struct(struct output *o, const struct cw_map *map, const char *c)
{
	for (size_t i = map->n_fields; i-- > 0;)
		encode_field(o, &map->fields[i], &map->pb->fields[i], c);
}

/* ---- the whole ---- */

int cw_message_encode(const struct cw_message *msg, uint8_t **ret_buf, size_t *ret_len)
{
	uint8_t header[CW_FRAME_HEADER_BYTES];
	struct output o = { 0 };

	if (msg->type == CW_MSG_NONE || msg->type >= CW_MSG__MAX)
		return -EINVAL;
	encode_message(&o, cw_bodies[msg->type].map, cw_bodies[msg->type].number,
		       (const char *)msg + BODY_OFFSET);
	put_varint(&o, CW_WIRE_VERSION);
	put_tag(&o, VERSION_FIELD, WIRE_VARINT);
	if (!o.error)
		o.error = cw_frame_header(o.used, header);
	put_bytes(&o, header, sizeof(header));
	if (o.error) {
		free(o.bytes);
		return o.error;
	}
	memmove(o.bytes, o.bytes + o.capacity - o.used, o.used);
	*ret_buf = o.bytes;
	*ret_len = o.used;
	return 0;
}

/* The body's tag comes after the version, whose tag and value have a byte each. */
void cw_message_set_digest_type(uint8_t *frame, uint32_t type)
{
	uint32_t tag = cw_bodies[type].number << 3 | WIRE_BYTES;

	frame[CW_FRAME_HEADER_BYTES + 2] = (uint8_t)(tag | 0x80);
	frame[CW_FRAME_HEADER_BYTES + 3] = (uint8_t)(tag >> 7);
}

const char *cw_message_name(unsigned type)
{
	return type < CW_MSG__MAX ? cw_bodies[type].name : "unknown";
}
