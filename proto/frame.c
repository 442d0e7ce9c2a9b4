/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/frame.h"

#include <errno.h>

static int check_length(size_t len)
{
	return len == 0 || len > CW_FRAME_MAX_BYTES ? -EMSGSIZE : 0;
}

int cw_frame_parse(const uint8_t *buf, size_t len, const uint8_t **ret_payload, size_t *ret_len,
		   size_t *ret_used)
{
	size_t payload_len;
	int r;

	if (len < CW_FRAME_HEADER_BYTES)
		return CW_FRAME_NEED_MORE;
	payload_len = (size_t)buf[0] << 24 | (size_t)buf[1] << 16 | (size_t)buf[2] << 8 | buf[3];
	/*
	 * Check the length before the payload arrives. Otherwise the caller would buffer up to 4
	 * GiB first.
	 */
	r = check_length(payload_len);
	if (r < 0)
		return r;
	if (len - CW_FRAME_HEADER_BYTES < payload_len)
		return CW_FRAME_NEED_MORE;
	*ret_payload = buf + CW_FRAME_HEADER_BYTES;
	*ret_len = payload_len;
	*ret_used = CW_FRAME_HEADER_BYTES + payload_len;
	return 0;
}

int cw_frame_header(size_t len, uint8_t *out)
{
	int r;

	r = check_length(len);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < CW_FRAME_HEADER_BYTES; i++)
		out[i] = (uint8_t)(len >> (24 - 8 * i));
	return 0;
}
