/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing: a 32-bit big-endian length, then that many bytes of payload. The parser is a pure
 * function over a byte range, so bufferevents, blocking sockets and fuzzers can use it. One read
 * may carry several frames. Callers therefore repeat the call until it returns CW_FRAME_NEED_MORE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CW_FRAME_HEADER_BYTES 4u
/*
 * The largest payload. A longer frame is a protocol violation, and the receiver closes the
 * connection.
 */
#define CW_FRAME_MAX_BYTES (1u << 20)

enum cw_frame_result {
	CW_FRAME_NEED_MORE = 1,
};

/*
 * Parses one frame at the start of buf. Returns 0 and sets *ret_payload (borrowed from buf) and
 * *ret_len; the caller then consumes *ret_used bytes. Returns CW_FRAME_NEED_MORE if the frame is
 * incomplete. Returns -EMSGSIZE if the frame's length is 0 or above CW_FRAME_MAX_BYTES.
 */
int cw_frame_parse(const uint8_t *buf, size_t len, const uint8_t **ret_payload, size_t *ret_len,
		   size_t *ret_used);

/*
 * Writes the header for a payload of len bytes to out[CW_FRAME_HEADER_BYTES]. Returns 0, or
 * -EMSGSIZE if len is 0 or above CW_FRAME_MAX_BYTES.
 */
int cw_frame_header(size_t len, uint8_t *out);
