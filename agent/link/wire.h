/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's messages as bytes (proto/collwatch.proto). protobuf-c, with an allocator that cannot
 * grow: a fixed arena, emptied after each message. The helper thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* From a daemon nothing longer is accepted. */
#define CW_WIRE_MAX_IN 4096u
/* Room for a frame around text of len bytes. */
#define CW_WIRE_OVERHEAD 128u

enum cw_wire_kind {
	CW_WIRE_OTHER = 0, /* newer than this agent: skip */
	CW_WIRE_WELCOME = 1,
	CW_WIRE_REFUSED = 2,
	CW_WIRE_PYTHON_STACKS = 3,
};

struct cw_wire_in {
	enum cw_wire_kind kind;
	uint64_t id;      /* of a request */
	char reason[128]; /* of a refusal */
};

/* Frames of what the agent says; return: bytes written, 0 when buf is too small. */
/* record_error: the errno for which there is no record; 0: it comes along. */
size_t cw_wire_hello(uint8_t *buf, size_t len, uint64_t record_bytes, uint32_t record_error);
size_t cw_wire_python_stacks(uint8_t *buf, size_t len, uint64_t id, uint32_t status,
			     const char *text);

/*
 * Takes one frame from the start of buf. Return: its length in bytes with ret_in set, 0 = not
 * complete yet, -EPROTO = not a message of ours, or one too long: close.
 */
int cw_wire_parse(const uint8_t *buf, size_t len, struct cw_wire_in *ret_in);
