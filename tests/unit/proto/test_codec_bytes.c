/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as bytes written by hand: allowed by protobuf, not allowed, and meaningless. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "proto/codec.h"

/* No encoder here writes these; a later one may. */
Test(codec_bytes, reads_whatever_order_and_packing_a_sender_chooses)
{
	/* AgentHello { record_bytes 3, version_max 2, version_min 1, version_max 9 } */
	static const uint8_t order[] = { 0x52, 8, 0x18, 3, 0x10, 2, 0x08, 1, 0x10, 9, 0x08, 1 };
	/* WindowRequest { comm_ids 1 unpacked, max_ops 5, comm_ids packed: none, then 2 and 3 } */
	static const uint8_t packing[] = { 0xc2, 0x01, 31,   0x19, 1,    0,  0, 0, 0, 0, 0, 0,
					   0x20, 5,    0x1a, 0,    0x1a, 16, 2, 0, 0, 0, 0, 0,
					   0,    0,    3,    0,    0,    0,  0, 0, 0, 0 };
	struct cw_message *msg = NULL;

	cr_assert_eq(cw_message_decode(order, sizeof(order), &msg), 0);
	cr_expect_eq(msg->agent_hello.version_min, 1u);
	cr_expect_eq(msg->agent_hello.version_max, 9u, "the last one counts");
	cr_expect_eq(msg->agent_hello.record_bytes, 3u);
	msg = cw_message_free(msg);
	cr_assert_eq(cw_message_decode(packing, sizeof(packing), &msg), 0);
	cr_assert_eq(msg->window_request.n_comm_ids, 3u);
	cr_expect_eq(msg->window_request.comm_ids[0], 1u);
	cr_expect_eq(msg->window_request.comm_ids[2], 3u);
	cr_expect_eq(msg->window_request.max_ops, 5u);
	msg = cw_message_free(msg);
}

Test(codec_bytes, a_part_that_comes_twice_replaces_the_first)
{
	/* Digest { ranks { members { pending { kind 1, dtype 2 }, pending { kind 3 } } } } */
	static const uint8_t twice[] = { 0xb2, 0x01, 17, 0x3a, 15, 0xaa, 0x01, 12, 0x9a, 0x01,
					 4,    0x08, 1,  0x10, 2,  0x9a, 0x01, 2,  0x08, 3 };
	struct cw_message *msg = NULL;

	cr_assert_eq(cw_message_decode(twice, sizeof(twice), &msg), 0);
	cr_expect_eq(msg->digest.ranks[0].members[0].pending->kind, 3);
	cr_expect_eq(msg->digest.ranks[0].members[0].pending->dtype, 0);
	cr_expect_str_eq(msg->digest.ranks[0].members[0].name, "");
	msg = cw_message_free(msg);
}

Test(codec_bytes, malformed_bytes_are_refused)
{
	static const struct {
		const char *what;
		uint8_t len, bytes[16];
	} cases[] = {
		{ "a body that is a number", 3, { 0x50, 1, 0 } },
		{ "a number that is text", 4, { 0x52, 2, 0x0a, 0 } },
		{ "text that is a number", 4, { 0x62, 2, 0x08, 1 } },
		{ "longer than what is there", 4, { 0x52, 3, 0x08, 1 } },
		{ "a tag without its value", 3, { 0x52, 1, 0x08 } },
		{ "field number 0", 4, { 0x52, 2, 0x00, 1 } },
		{ "a group", 3, { 0x52, 1, 0x0b } },
		{ "a number of eleven bytes",
		  14,
		  { 0x52, 12, 0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 } },
		{ "half a packed number", 9, { 0xc2, 0x01, 6, 0x1a, 4, 1, 2, 3, 4 } },
		{ "half a fixed number", 7, { 0xc2, 0x01, 4, 0x19, 1, 2, 3 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cw_message *msg = NULL;

		/* In a block of its own size: a sanitizer sees a read behind it. */
		uint8_t *bytes = malloc(cases[i].len);

		memcpy(bytes, cases[i].bytes, cases[i].len);
		cr_expect_eq(cw_message_decode(bytes, cases[i].len, &msg), -EBADMSG, "%s",
			     cases[i].what);
		free(bytes);
	}
}

/* Or taking one from the time of day could overflow. */
Test(codec_bytes, ages_are_kept_within_what_can_be_computed_with)
{
	/* Digest { ranks { ended_age, host_activity_age, sampled_age } } */
	static const uint8_t ages[] = { 0xb2, 0x01, 26,   0x3a, 24,   0x68, 0xff, 0xff, 0xff, 0xff,
					0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x70, 1,    0x78, 0xfe,
					0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
	struct cw_message *msg = NULL;

	cr_assert_eq(cw_message_decode(ages, sizeof(ages), &msg), 0);
	cr_expect_eq(msg->digest.ranks[0].ended_age_ns, -CW_BOUND_NS);
	cr_expect_eq(msg->digest.ranks[0].host_activity_age_ns, -1);
	cr_expect_eq(msg->digest.ranks[0].sampled_age_ns, CW_BOUND_NS);
	msg = cw_message_free(msg);
}
