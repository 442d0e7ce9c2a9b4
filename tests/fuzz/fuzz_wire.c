/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of frames from a hostile peer; an accepted message must survive being sent on. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/messages/messages.h"

static void decode(const uint8_t *payload, size_t len)
{
	struct cw_message *msg = NULL, *again = NULL;
	uint8_t *buf;
	size_t buf_len;

	if (cw_message_decode(payload, len, &msg) < 0)
		return;
	if (msg->type != CW_MSG_NONE) {
		FUZZ_CHECK(cw_message_encode(msg, &buf, &buf_len) == 0);
		FUZZ_CHECK(cw_message_decode(buf + CW_FRAME_HEADER_BYTES,
					     buf_len - CW_FRAME_HEADER_BYTES, &again) == 0);
		FUZZ_CHECK(cw_message_is_equal(msg, again));
		cw_message_free(again);
		free(buf);
	}
	cw_message_free(msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *payload;
	size_t len, used;

	while (cw_frame_parse(data, size, &payload, &len, &used) == 0) {
		FUZZ_CHECK(used <= size && payload + len == data + used);
		decode(payload, len);
		data += used;
		size -= used;
	}
	return 0;
}
