/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "proto/frame.h"

static const uint8_t *payload;
static size_t payload_len, used;

static int parse(const void *buf, size_t len)
{
	return cw_frame_parse(buf, len, &payload, &payload_len, &used);
}

Test(frame, needs_more_until_the_last_byte)
{
	static const uint8_t frame[] = { 0, 0, 0, 3, 'a', 'b', 'c' };

	for (size_t len = 0; len < sizeof(frame); len++)
		cr_expect_eq(parse(frame, len), CW_FRAME_NEED_MORE, "%zu bytes", len);
	cr_assert_eq(parse(frame, sizeof(frame)), 0);
	cr_expect_eq(payload, frame + 4);
	cr_expect_eq(payload_len, 3u);
	cr_expect_eq(used, sizeof(frame));
}

Test(frame, takes_one_of_several_frames)
{
	static const uint8_t two[] = { 0, 0, 0, 1, 'a', 0, 0, 0, 2, 'b', 'c', 0 };

	cr_assert_eq(parse(two, sizeof(two)), 0);
	cr_expect_eq(used, 5u);
	cr_assert_eq(parse(two + used, sizeof(two) - used), 0);
	cr_expect_eq(memcmp(payload, "bc", payload_len), 0);
	cr_expect_eq(parse(two + 11, 1), CW_FRAME_NEED_MORE);
}

Test(frame, refuses_impossible_lengths_before_they_arrive)
{
	static const uint8_t zero[] = { 0, 0, 0, 0 };
	static const uint8_t over[] = { 0, 0x10, 0, 1 };
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff };
	static const uint8_t most[] = { 0, 0x10, 0, 0 };

	cr_expect_eq(parse(zero, 4), -EMSGSIZE);
	cr_expect_eq(parse(over, 4), -EMSGSIZE);
	cr_expect_eq(parse(huge, 4), -EMSGSIZE);
	cr_expect_eq(parse(most, 4), CW_FRAME_NEED_MORE);
}

Test(frame, header_is_big_endian_and_bounded)
{
	uint8_t out[4];

	cr_assert_eq(cw_frame_header(0x0a0b0c, out), 0);
	cr_expect_eq(memcmp(out, "\x00\x0a\x0b\x0c", 4), 0);
	cr_expect_eq(cw_frame_header(0, out), -EMSGSIZE);
	cr_expect_eq(cw_frame_header(CW_FRAME_MAX_BYTES + 1, out), -EMSGSIZE);
	cr_expect_eq(cw_frame_header(CW_FRAME_MAX_BYTES, out), 0);
}
