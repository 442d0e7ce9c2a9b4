/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/vnet/newer_version.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/collwatch.pb-c.h"
#include "proto/frame.h"
#include "proto/messages.h"

#define N_FIELDS 4u

/*
 * The unknown fields. protobuf-c writes their data unchanged, so the data of a text begin with its
 * length. It never changes this array.
 */
static ProtobufCMessageUnknownField fields[N_FIELDS] = {
	{ 1000, PROTOBUF_C_WIRE_TYPE_VARINT, 1, (uint8_t[]){ 7 } },
	{ 1001, PROTOBUF_C_WIRE_TYPE_64BIT, 8, (uint8_t[8]){ 7 } },
	{ 1002, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, 6, (uint8_t[]){ "\5later" } },
	{ 1003, PROTOBUF_C_WIRE_TYPE_32BIT, 4, (uint8_t[4]){ 7 } },
};

/* Gives the message, and all messages inside it, n of these fields. */
static void set_fields(ProtobufCMessage *m, unsigned n)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		const void *value = (char *)m + f->offset,
			   *count = (char *)m + f->quantifier_offset;
		bool is_other =
			f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && *(const uint32_t *)count != f->id;

		if (f->type != PROTOBUF_C_TYPE_MESSAGE || is_other)
			continue;
		if (f->label != PROTOBUF_C_LABEL_REPEATED) {
			if (*(ProtobufCMessage *const *)value)
				set_fields(*(ProtobufCMessage *const *)value, n);
			continue;
		}
		for (size_t k = 0; k < *(const size_t *)count; k++)
			set_fields((*(ProtobufCMessage * *const *)value)[k], n);
	}
	m->n_unknown_fields = n;
	m->unknown_fields = n ? fields : NULL;
}

static int pack(const Collwatch__Envelope *envelope, uint8_t **ret, size_t *ret_len)
{
	size_t len = collwatch__envelope__get_packed_size(envelope);
	uint8_t *frame;

	if (len > CW_FRAME_MAX_BYTES)
		return -EMSGSIZE;
	frame = malloc(CW_FRAME_HEADER_BYTES + len);
	if (!frame)
		return -ENOMEM;
	(void)cw_frame_header(len, frame); /* cannot fail: 0 < len <= CW_FRAME_MAX_BYTES */
	(void)collwatch__envelope__pack(envelope, frame + CW_FRAME_HEADER_BYTES);
	*ret = frame;
	*ret_len = CW_FRAME_HEADER_BYTES + len;
	return 0;
}

int newer_version_frame(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len)
{
	Collwatch__Envelope *envelope = collwatch__envelope__unpack(
		NULL, len - CW_FRAME_HEADER_BYTES, frame + CW_FRAME_HEADER_BYTES);
	int r;

	if (!envelope)
		return -EBADMSG;
	envelope->version = CW_WIRE_VERSION + 1;
	set_fields(&envelope->base, N_FIELDS);
	r = pack(envelope, ret, ret_len);
	set_fields(&envelope->base, 0); /* the fields are not on the heap */
	collwatch__envelope__free_unpacked(envelope, NULL);
	return r;
}
