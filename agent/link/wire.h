/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes the agent's messages (proto/collwatch.proto). We use protobuf-c with an
 * allocator that cannot grow: a fixed arena, which we empty before each message. Only the helper
 * thread may call these functions, except for cw_wire_hello(), which works in any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The longest frame that we accept from the daemon, in bytes. */
#define CW_WIRE_MAX_IN 4096u
/* Limit of a frame's bytes beside its text. */
#define CW_WIRE_OVERHEAD 128u

enum cw_wire_kind {
	CW_WIRE_OTHER = 0, /* a message newer than this agent: skip it */
	CW_WIRE_WELCOME = 1,
	CW_WIRE_REFUSED = 2,
	CW_WIRE_PYTHON_STACKS = 3,
};

struct cw_wire_in {
	enum cw_wire_kind kind;
	uint64_t id;      /* only for a request */
	char reason[128]; /* only for a refusal */
};

/*
 * Encode a frame into buf. Return the number of bytes written; 0 if buf is too small. record_error:
 * the errno that prevented the record; 0 = the record comes with this frame.
 */
size_t cw_wire_hello(uint8_t *buf, size_t len, uint64_t record_bytes, uint32_t record_error);
size_t cw_wire_python_stacks(uint8_t *buf, size_t len, uint64_t id, uint32_t status,
			     const char *text);

/*
 * Decodes the first frame in buf. Returns its length in bytes and fills *ret_in. Returns 0 if the
 * frame is not complete yet. Returns -EPROTO if the frame is too long or not a valid message. The
 * caller must then close the connection.
 */
int cw_wire_parse(const uint8_t *buf, size_t len, struct cw_wire_in *ret_in);
