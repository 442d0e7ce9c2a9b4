/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes bytes into a struct cw_message in one pass, by the tables of codec_map.c and protobuf-c's
 * descriptors. We do not use the generated structs in between. A leader of 2,048 nodes decodes as
 * many digests a second and stores all of them. The generated structs would take half of its time
 * and two thirds of its memory.
 *
 * A decoded message and everything it points to live in memory of the message's own. Recursion is
 * as deep as the nesting of the tables (five), regardless of the input: no message contains itself.
 *
 * protobuf permits some encodings that our encoder never produces. If a field appears twice, the
 * last one counts (we do not merge parts of messages). Fields may come in any order. Repeated
 * numbers may be packed or not.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "collwatch.pb-c.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "proto/codec.h"
#include "proto/codec_map.h"
#include "proto/message_memory.h"

/* All members of the union in struct cw_message have the same offset. */
#define BODY_OFFSET offsetof(struct cw_message, agent_hello)
#define VERSION_FIELD 1u
/*
 * First size of a message's memory, as a multiple of its encoding. The structs of a digest take
 * three to five times the bytes of the encoding.
 */
#define MEMORY_FACTOR 3
#define VARINT_MAX_BYTES 10

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct cursor {
	const uint8_t *at, *end;
};

/* One field of the encoding, still undecoded. */
struct part {
	uint32_t number;
	uint32_t type; /* enum wire_type */
	uint64_t value;
	struct cursor bytes; /* the content, if the type is WIRE_BYTES */
};

static void memory_freep(struct cw_message_memory **memory)
{
	cw_message_memory_free(*memory);
}

/* ---- bytes ---- */

static bool take_long_varint(struct cursor *c, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < VARINT_MAX_BYTES && c->at < c->end; i++) {
		uint8_t byte = *c->at++;

		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/*
 * Tags, lengths and most numbers have one byte. We handle this case inline, because a leader spends
 * half of its time here.
 */
static inline bool take_varint(struct cursor *c, uint64_t *ret)
{
	if (c->at < c->end && !(*c->at & 0x80)) {
		*ret = *c->at++;
		return true;
	}
	return take_long_varint(c, ret);
}

static inline bool take_64(struct cursor *c, uint64_t *ret)
{
	uint64_t v;

	if ((size_t)(c->end - c->at) < sizeof(v))
		return false;
	memcpy(&v, c->at, sizeof(v));
	*ret = le64toh(v);
	c->at += sizeof(v);
	return true;
}

static inline bool take_32(struct cursor *c, uint64_t *ret)
{
	uint32_t v;

	if ((size_t)(c->end - c->at) < sizeof(v))
		return false;
	memcpy(&v, c->at, sizeof(v));
	*ret = le32toh(v);
	c->at += sizeof(v);
	return true;
}

static inline bool take_bytes(struct cursor *c, struct cursor *ret)
{
	uint64_t len;

	if (!take_varint(c, &len) || len > (size_t)(c->end - c->at))
		return false;
	*ret = (struct cursor){ c->at, c->at + len };
	c->at += len;
	return true;
}

/*
 * Reads the next field. Returns false if the field is malformed. The caller ensures that the cursor
 * is not at its end.
 */
static inline __attribute__((always_inline)) bool take_part(struct cursor *c, struct part *ret)
{
	uint64_t tag;

	if (!take_varint(c, &tag) || tag > UINT32_MAX || tag < 8)
		return false;
	ret->number = (uint32_t)tag >> 3;
	ret->type = (uint32_t)tag & 7;
	switch (ret->type) {
	case WIRE_VARINT:
		return take_varint(c, &ret->value);
	case WIRE_64:
		return take_64(c, &ret->value);
	case WIRE_32:
		return take_32(c, &ret->value);
	case WIRE_BYTES:
		ret->value = 0;
		return take_bytes(c, &ret->bytes);
	default:
		return false; /* the part is a group: no encoder has sent groups for ten years */
	}
}

/* ---- numbers ---- */

static bool fits_uint(uint64_t v, size_t bytes)
{
	return bytes >= 8 || v >> (8 * bytes) == 0;
}

static bool fits_int(int64_t v, size_t bytes)
{
	return bytes >= 8 ||
	       (v >= -(INT64_C(1) << (8 * bytes - 1)) && v < INT64_C(1) << (8 * bytes - 1));
}

static int decode_uint(const struct cw_field *f, ProtobufCType type, const struct part *p, char *c)
{
	uint64_t v = type == PROTOBUF_C_TYPE_UINT32 ? (uint32_t)p->value : p->value;

	if (p->type != (type == PROTOBUF_C_TYPE_FIXED64 ? WIRE_64 : WIRE_VARINT))
		return -EBADMSG;
	if ((f->flags & CW_FIELD_KNOWN_ONLY) && v > f->max)
		v = 0;
	if (!fits_uint(v, f->c_bytes))
		return -EBADMSG;
	cw_field_store(c + f->c_offset, f->c_bytes, v);
	return 0;
}

static int decode_int(const struct cw_field *f, ProtobufCType type, const struct part *p, char *c)
{
	uint64_t zigzag = type == PROTOBUF_C_TYPE_SINT32 ? (uint32_t)p->value : p->value;
	int64_t v = (int64_t)((zigzag >> 1) ^ (0 - (zigzag & 1)));

	if (f->flags & CW_FIELD_AGE)
		v = cw_bounded_ns(v);
	if (p->type != WIRE_VARINT || !fits_int(v, f->c_bytes))
		return -EBADMSG;
	cw_field_store(c + f->c_offset, f->c_bytes, (uint64_t)v);
	return 0;
}

/* ---- text, structs and lists ---- */

static int decode_struct(struct cw_message_memory *memory, const struct cw_map *map,
			 struct cursor from, char *c);

/*
 * Returns the error of a failed allocation: -EBADMSG if the message reached its memory limit, else
 * -ENOMEM.
 */
static int alloc_error(const struct cw_message_memory *memory)
{
	return memory->is_exceeded ? -EBADMSG : -ENOMEM;
}

static int decode_text(struct cw_message_memory *memory, const struct part *p, const char **ret)
{
	size_t len = (size_t)(p->bytes.end - p->bytes.at);
	char *text;

	if (p->type != WIRE_BYTES || len > CW_MSG_MAX_STRING)
		return -EBADMSG;
	*ret = "";
	if (len == 0)
		return 0;
	text = cw_message_memory_alloc(memory, len + 1);
	if (!text)
		return alloc_error(memory);
	memcpy(text, p->bytes.at, len);
	cw_text_sanitise(text);
	*ret = text;
	return 0;
}

/* A key of another length is malformed: a later version would use another field number. */
static int decode_job_key(const struct part *p, struct cw_job_key *ret)
{
	size_t len = (size_t)(p->bytes.end - p->bytes.at);

	if (p->type != WIRE_BYTES || (len != 0 && len != sizeof(ret->bytes)))
		return -EBADMSG;
	*ret = (struct cw_job_key){ 0 };
	memcpy(ret->bytes, p->bytes.at, len);
	return 0;
}

/*
 * Sets the defaults of absent fields in zeroed structs. The default of a text is "" instead of
 * NULL.
 */
static void set_defaults(const struct cw_map *map, char *c, size_t n)
{
	for (size_t k = 0; k < map->n_fields; k++) {
		const struct cw_field *f = &map->fields[k];

		if (f->kind != CW_FIELD_STRING)
			continue;
		for (size_t i = 0; i < n; i++)
			*(const char **)(c + i * map->c_bytes + f->c_offset) = "";
	}
}

static int decode_message(struct cw_message_memory *memory, const struct cw_field *f,
			  const struct part *p, char **place)
{
	if (p->type != WIRE_BYTES)
		return -EBADMSG;
	/*
	 * Reuse the struct of a repeated field. Otherwise a hostile sender could make us allocate a
	 * struct for every two bytes.
	 */
	if (*place)
		memset(*place, 0, f->sub->c_bytes);
	else
		*place = cw_message_memory_alloc(memory, f->sub->c_bytes);
	if (!*place)
		return alloc_error(memory);
	set_defaults(f->sub, *place, 1);
	return decode_struct(memory, f->sub, p->bytes, *place);
}

static size_t n_elements(const struct cw_field *f, const struct part *p)
{
	bool is_packed = f->kind == CW_FIELD_U64S && p->type == WIRE_BYTES;

	return is_packed ? (size_t)(p->bytes.end - p->bytes.at) / 8 : 1;
}

/*
 * Counts the elements of an array, in the first part and in the rest of the message. Returns false
 * if the input is malformed.
 */
static bool count_elements(const struct cw_field *f, const struct part *first, struct cursor rest,
			   size_t *ret)
{
	size_t n = n_elements(f, first);
	struct part p;

	while (rest.at < rest.end) {
		if (!take_part(&rest, &p))
			return false;
		if (p.number == first->number)
			n += n_elements(f, &p);
	}
	*ret = n;
	return true;
}

static size_t element_bytes(const struct cw_field *f)
{
	if (f->kind == CW_FIELD_LIST)
		return f->sub->c_bytes;
	return f->kind == CW_FIELD_STRINGS ? sizeof(char *) : sizeof(uint64_t);
}

static int decode_u64s(const struct part *p, uint64_t *to, uint32_t *n)
{
	struct cursor bytes = p->bytes;

	if (p->type == WIRE_64) {
		to[(*n)++] = p->value;
		return 0;
	}
	if (p->type != WIRE_BYTES || (bytes.end - bytes.at) % 8)
		return -EBADMSG;
	while (take_64(&bytes, &to[*n]))
		(*n)++;
	return 0;
}

/* Decodes elements of an array. The first element allocates memory for the whole array. */
static int decode_element(struct cw_message_memory *memory, const struct cw_field *f,
			  const struct part *p, struct cursor rest, char *c)
{
	char **elements = (char **)(c + f->c_offset);
	uint32_t *n = (uint32_t *)(c + f->c_n_offset);
	size_t total;

	/*
	 * An empty packed part must not allocate and count yet. A message with many empty parts
	 * would otherwise count its rest once per part.
	 */
	if (!*elements && n_elements(f, p) == 0)
		return p->bytes.at == p->bytes.end ? 0 : -EBADMSG;
	if (!*elements) {
		if (!count_elements(f, p, rest, &total) || total > f->max)
			return -EBADMSG;
		*elements = cw_message_memory_calloc(memory, total, element_bytes(f));
		if (!*elements)
			return alloc_error(memory);
		if (f->kind == CW_FIELD_LIST)
			set_defaults(f->sub, *elements, total);
	}
	if (f->kind == CW_FIELD_U64S)
		return decode_u64s(p, (uint64_t *)*elements, n);
	if (f->kind == CW_FIELD_STRINGS)
		return decode_text(memory, p, (const char **)*elements + (*n)++);
	if (p->type != WIRE_BYTES)
		return -EBADMSG;
	return decode_struct(memory, f->sub, p->bytes, *elements + (*n)++ * f->sub->c_bytes);
}

/* ---- a struct ---- */

/* Inline, because a leader spends its time in one of the two callers of this function. */
static inline __attribute__((always_inline)) int
decode_field(struct cw_message_memory *memory, const struct cw_field *f, ProtobufCType type,
	     const struct part *p, struct cursor rest, char *c)
{
	switch (f->kind) {
	case CW_FIELD_UINT:
		return decode_uint(f, type, p, c);
	case CW_FIELD_INT:
		return decode_int(f, type, p, c);
	case CW_FIELD_STRING:
		return decode_text(memory, p, (const char **)(c + f->c_offset));
	case CW_FIELD_JOB_KEY:
		return decode_job_key(p, (struct cw_job_key *)(c + f->c_offset));
	case CW_FIELD_MESSAGE:
		return decode_message(memory, f, p, (char **)(c + f->c_offset));
	default:
		return decode_element(memory, f, p, rest, c);
	}
}

/*
 * Returns the index of the field with this number; n = there is none. Tables are in the order of
 * field numbers, mostly without a gap, so we first try the number as an index.
 */
static inline size_t find_field(const ProtobufCFieldDescriptor *fields, size_t n, uint32_t number)
{
	if (number <= n && fields[number - 1].id == number)
		return number - 1;
	for (size_t i = 0; i < n; i++)
		if (fields[i].id == number)
			return i;
	return n;
}

/* Decodes a struct into c, in which the caller has set the defaults. */
static int decode_struct(struct cw_message_memory *memory, const struct cw_map *map,
			 struct cursor from, char *c)
{
	const ProtobufCFieldDescriptor *pb_fields = map->pb->fields;
	const struct cw_field *fields = map->fields;
	size_t n = map->n_fields;
	int r = 0;

	while (from.at < from.end && r == 0) {
		struct part p;
		size_t i;

		if (!take_part(&from, &p))
			return -EBADMSG;
		i = find_field(pb_fields, n, p.number);
		if (i < n) /* we skip fields of later versions */
			r = decode_field(memory, &fields[i], pb_fields[i].type, &p, from, c);
	}
	return r;
}

/* ---- decoding in two steps ---- */

/* A decoded message and the codec's private fields. */
struct decoded {
	struct cw_message msg;
	/*
	 * The message's body, if we have only counted the elements of its lists; NULL = we have
	 * decoded all.
	 */
	struct cursor unread;
};

/*
 * Decodes some fields of a struct into c, in which the caller has set the defaults. With only_count
 * we count the elements of lists and decode all other fields. Otherwise we decode only the lists.
 */
static int decode_lists(struct cw_message_memory *memory, const struct cw_map *map,
			struct cursor from, char *c, bool only_count)
{
	const ProtobufCFieldDescriptor *pb_fields = map->pb->fields;
	int r = 0;

	while (from.at < from.end && r == 0) {
		const struct cw_field *f;
		struct part p;
		size_t i;

		if (!take_part(&from, &p))
			return -EBADMSG;
		i = find_field(pb_fields, map->n_fields, p.number);
		if (i == map->n_fields)
			continue;
		f = &map->fields[i];
		if (f->kind != CW_FIELD_LIST && only_count)
			r = decode_field(memory, f, pb_fields[i].type, &p, from, c);
		else if (f->kind == CW_FIELD_LIST && !only_count)
			r = decode_element(memory, f, &p, from, c);
		else if (f->kind == CW_FIELD_LIST &&
			 (p.type != WIRE_BYTES || ++*(uint32_t *)(c + f->c_n_offset) > f->max))
			r = -EBADMSG;
	}
	return r;
}

static int decode_digest_but_ranks(struct cw_message_memory *memory, struct decoded *d,
				   struct cursor body)
{
	size_t len = (size_t)(body.end - body.at);
	uint8_t *copy = cw_message_memory_alloc(memory, len);

	if (!copy)
		return alloc_error(memory);
	memcpy(copy, body.at, len);
	d->unread = (struct cursor){ copy, copy + len };
	return decode_lists(memory, cw_bodies[d->msg.type].map, body, (char *)&d->msg.digest, true);
}

bool cw_message_is_whole(const struct cw_message *msg)
{
	return !msg->memory || !((const struct decoded *)msg)->unread.at;
}

int cw_message_make_whole(struct cw_message *msg)
{
	struct cw_msg_digest *digest = &msg->digest;
	struct decoded *d = (struct decoded *)msg;
	struct cursor body;
	int r;

	if (cw_message_is_whole(msg))
		return 0;
	body = d->unread;
	d->unread = (struct cursor){ 0 };
	digest->n_ranks = 0;
	r = decode_lists(msg->memory, cw_bodies[msg->type].map, body, (char *)digest, false);
	if (r < 0)
		digest->n_ranks = 0;
	return r;
}

/* ---- a whole message ---- */

static uint32_t type_of(uint32_t number)
{
	for (uint32_t type = CW_MSG_NONE + 1; type < CW_MSG__MAX; type++)
		if (cw_bodies[type].number == number)
			return type;
	return CW_MSG_NONE;
}

/*
 * Reads the fields of the envelope. If the message has several bodies, the last one counts, as in
 * any oneof.
 */
static int read_envelope(struct cursor from, struct cw_message *msg, struct cursor *ret_body)
{
	while (from.at < from.end) {
		struct part p;
		uint32_t type;

		if (!take_part(&from, &p))
			return -EBADMSG;
		type = type_of(p.number);
		if (type ? p.type != WIRE_BYTES
			 : p.number == VERSION_FIELD && p.type != WIRE_VARINT)
			return -EBADMSG;
		if (p.number == VERSION_FIELD)
			msg->version = (uint32_t)p.value;
		if (!type)
			continue;
		msg->type = type;
		*ret_body = p.bytes;
	}
	return 0;
}

static int decode(const uint8_t *payload, size_t len, bool may_wait, struct cw_message **ret_msg)
{
	_cleanup_(memory_freep) struct cw_message_memory *memory = NULL;
	struct cw_message head = { 0 }, *msg;
	struct cursor body = { 0 };
	int r = read_envelope((struct cursor){ payload, payload + len }, &head, &body);

	if (r < 0)
		return r;
	may_wait = may_wait && head.type == CW_MSG_DIGEST_COPY;
	memory = cw_message_memory_new(
		CW_CODEC_MAX_MEMORY, sizeof(struct decoded) + len * (may_wait ? 1 : MEMORY_FACTOR));
	if (!memory)
		return -ENOMEM;
	msg = cw_message_memory_alloc(memory, sizeof(struct decoded));
	if (!msg)
		return alloc_error(memory);
	*msg = head;
	if (msg->type != CW_MSG_NONE) {
		set_defaults(cw_bodies[msg->type].map, (char *)msg + BODY_OFFSET, 1);
		r = may_wait ? decode_digest_but_ranks(memory, (struct decoded *)msg, body)
			     : decode_struct(memory, cw_bodies[msg->type].map, body,
					     (char *)msg + BODY_OFFSET);
	}
	if (r < 0)
		return r;
	msg->memory = steal_ptr(&memory);
	*ret_msg = msg;
	return 0;
}

int cw_message_decode(const uint8_t *payload, size_t len, struct cw_message **ret_msg)
{
	return decode(payload, len, false, ret_msg);
}

int cw_message_decode_received(const uint8_t *payload, size_t len, struct cw_message **ret_msg)
{
	return decode(payload, len, true, ret_msg);
}

struct cw_message *cw_message_free(struct cw_message *msg)
{
	if (msg)
		cw_message_memory_free(msg->memory);
	return NULL;
}
