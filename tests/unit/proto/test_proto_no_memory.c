/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/memory/no_memory.h"
#include "tests/support/messages/messages.h"

/* A frame is whole though its buffer could not be cut to its length; else there is none. */
static void encode(void *userdata)
{
	const struct cw_message *msg = userdata;
	uint8_t *frame = NULL, *right = NULL;
	size_t len = 77, right_len;
	int r;

	no_memory_begin();
	r = cw_message_encode(msg, &frame, &len);
	no_memory_end();
	cr_assert_eq(cw_message_encode(msg, &right, &right_len), 0);
	if (r == 0) {
		cr_assert_eq(len, right_len);
		cr_assert_eq(memcmp(frame, right, len), 0);
	} else {
		cr_assert(no_memory_happened());
		cr_assert_eq(r, -ENOMEM);
		cr_assert_null(frame);
		cr_assert_eq(len, 77);
	}
	free(frame);
	free(right);
}

struct payload {
	const struct cw_message *msg;
	const uint8_t *bytes;
	size_t len;
};

static void decode(void *userdata)
{
	const struct payload *p = userdata;
	struct cw_message *back = NULL;
	int r;

	no_memory_begin();
	r = cw_message_decode(p->bytes, p->len, &back);
	no_memory_end();
	if (no_memory_happened()) {
		cr_assert_eq(r, -ENOMEM);
		cr_assert_null(back);
		r = cw_message_decode(p->bytes, p->len, &back);
	}
	cr_assert_eq(r, 0);
	cr_assert(cw_message_is_equal(p->msg, back));
	cw_message_free(back);
}

/* Encoded, and decoded again. */
static unsigned walk_both(const struct cw_message *msg)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	struct payload p = { .msg = msg };
	unsigned n;
	size_t len, used;

	n = no_memory_walk(cw_message_name(msg->type), encode, (void *)msg);
	cr_assert_eq(cw_message_encode(msg, &frame, &len), 0);
	cr_assert_eq(cw_frame_parse(frame, len, &p.bytes, &p.len, &used), 0);
	return n + no_memory_walk(cw_message_name(msg->type), decode, &p);
}

Test(proto_no_memory, every_message_is_encoded_and_decoded_whole_or_not_at_all)
{
	unsigned n = 0;

	for (unsigned type = 1; type < CW_MSG__MAX; type++)
		n += walk_both(cw_sample_message(type));
	cr_assert_gt(n, 2 * (CW_MSG__MAX - 1));
}

/* Of many pieces: the sample's memory is one block or two. */
Test(proto_no_memory, so_are_large_messages)
{
	unsigned seed = 7, most = 0;

	for (unsigned type = 1; type < CW_MSG__MAX; type++) {
		struct cw_message_memory *memory = cw_message_memory_new(1 << 24, 0);
		unsigned n = walk_both(cw_random_message(memory, type, &seed));

		if (n > most)
			most = n;
		cw_message_memory_free(memory);
	}
	cr_assert_geq(most, 6);
}
