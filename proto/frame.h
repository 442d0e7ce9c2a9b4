/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing: a 32-bit big-endian length, then that many bytes. The parser is a pure function over a
 * byte range, so the same code serves bufferevents, blocking sockets and fuzzers. Call it in a loop
 * until it returns CW_FRAME_NEED_MORE, because one read may carry several frames.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CW_FRAME_HEADER_BYTES 4u
/* A longer frame is a protocol violation: the receiver closes the connection. */
#define CW_FRAME_MAX_BYTES (1u << 20)

enum cw_frame_result {
	CW_FRAME_NEED_MORE = 1,
};

/*
 * Looks for one frame at the start of buf. 0: *ret_payload (borrowed from buf) and *ret_len are
 * set, and the caller consumes *ret_used bytes. CW_FRAME_NEED_MORE: the frame is incomplete.
 * -EMSGSIZE: length 0 or above CW_FRAME_MAX_BYTES.
 */
int cw_frame_parse(const uint8_t *buf, size_t len, const uint8_t **ret_payload, size_t *ret_len,
		   size_t *ret_used);

/*
 * Writes the header for a payload of len bytes to out[CW_FRAME_HEADER_BYTES]. -EMSGSIZE as above.
 */
int cw_frame_header(size_t len, uint8_t *out);
