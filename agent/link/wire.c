/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/wire.h"

#include <errno.h>
#include <string.h>

#include "proto/collwatch.pb-c.h"

#define FRAME_HEADER 4u

/*
 * Memory for unpacked messages. An unpacked message takes about as much as its bytes, plus structs
 * and alignment.
 */
static _Alignas(16) uint8_t arena[4 * CW_WIRE_MAX_IN];
static size_t arena_used;

static void *arena_alloc(void *data, size_t size)
{
	void *p = arena + arena_used;

	if (size > sizeof(arena) - arena_used)
		return NULL;
	arena_used += (size + 15) & ~(size_t)15;
	if (arena_used > sizeof(arena))
		arena_used = sizeof(arena);
	return p;
}

static void arena_free(void *data, void *p)
{
	/* No single allocation is freed: cw_wire_parse() empties the whole arena. */
}

static ProtobufCAllocator allocator = { .alloc = arena_alloc, .free = arena_free };

static size_t pack(uint8_t *buf, size_t len, Collwatch__Envelope *envelope)
{
	size_t size = collwatch__envelope__get_packed_size(envelope);

	if (size > UINT32_MAX || size + FRAME_HEADER > len)
		return 0;
	buf[0] = (uint8_t)(size >> 24);
	buf[1] = (uint8_t)(size >> 16);
	buf[2] = (uint8_t)(size >> 8);
	buf[3] = (uint8_t)size;
	return FRAME_HEADER + collwatch__envelope__pack(envelope, buf + FRAME_HEADER);
}

size_t cw_wire_hello(uint8_t *buf, size_t len, uint64_t record_bytes, uint32_t record_error)
{
	Collwatch__Envelope envelope = COLLWATCH__ENVELOPE__INIT;
	Collwatch__AgentHello hello = COLLWATCH__AGENT_HELLO__INIT;

	hello.version_min = hello.version_max = 1;
	hello.record_bytes = record_bytes;
	hello.record_error = record_error;
	envelope.version = 1;
	envelope.body_case = COLLWATCH__ENVELOPE__BODY_AGENT_HELLO;
	envelope.agent_hello = &hello;
	return pack(buf, len, &envelope);
}

size_t cw_wire_python_stacks(uint8_t *buf, size_t len, uint64_t id, uint32_t status,
			     const char *text)
{
	Collwatch__Envelope envelope = COLLWATCH__ENVELOPE__INIT;
	Collwatch__PythonStacksReply reply = COLLWATCH__PYTHON_STACKS_REPLY__INIT;

	reply.id = id;
	reply.status = status;
	reply.text = (char *)text; /* protobuf-c only reads the text */
	envelope.version = 1;
	envelope.body_case = COLLWATCH__ENVELOPE__BODY_PYTHON_STACKS_REPLY;
	envelope.python_stacks_reply = &reply;
	return pack(buf, len, &envelope);
}

static void read_envelope(const Collwatch__Envelope *envelope, struct cw_wire_in *in)
{
	switch (envelope->body_case) {
	case COLLWATCH__ENVELOPE__BODY_AGENT_WELCOME:
		in->kind = CW_WIRE_WELCOME;
		break;
	case COLLWATCH__ENVELOPE__BODY_AGENT_REFUSED:
		in->kind = CW_WIRE_REFUSED;
		if (envelope->agent_refused->reason)
			strncpy(in->reason, envelope->agent_refused->reason,
				sizeof(in->reason) - 1);
		break;
	case COLLWATCH__ENVELOPE__BODY_PYTHON_STACKS_REQUEST:
		in->kind = CW_WIRE_PYTHON_STACKS;
		in->id = envelope->python_stacks_request->id;
		break;
	default:
		in->kind = CW_WIRE_OTHER;
		break;
	}
}

int cw_wire_parse(const uint8_t *buf, size_t len, struct cw_wire_in *ret_in)
{
	Collwatch__Envelope *envelope;
	uint32_t size;

	if (len < FRAME_HEADER)
		return 0;
	size = (uint32_t)buf[0] << 24 | (uint32_t)buf[1] << 16 | (uint32_t)buf[2] << 8 | buf[3];
	if (size == 0 || size > CW_WIRE_MAX_IN - FRAME_HEADER)
		return -EPROTO;
	if (len < FRAME_HEADER + size)
		return 0;
	arena_used = 0;
	envelope = collwatch__envelope__unpack(&allocator, size, buf + FRAME_HEADER);
	if (!envelope)
		return -EPROTO;
	memset(ret_in, 0, sizeof(*ret_in));
	read_envelope(envelope, ret_in);
	return (int)(FRAME_HEADER + size);
}
