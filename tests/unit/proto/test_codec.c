/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "proto/codec.h"
#include "proto/codec_map.h"
#include "proto/frame.h"
#include "tests/support/messages/messages.h"

static void message_freep(struct cw_message **msg)
{
	cw_message_free(*msg);
}

static void memory_freep(struct cw_message_memory **memory)
{
	cw_message_memory_free(*memory);
}

static int decode_frame(const uint8_t *buf, size_t len, struct cw_message **ret)
{
	size_t payload_len, used;
	const uint8_t *payload;
	int r;

	r = cw_frame_parse(buf, len, &payload, &payload_len, &used);
	cr_assert_eq(r, 0);
	cr_assert_eq(used, len);
	return cw_message_decode(payload, payload_len, ret);
}

static void expect_round_trip(const struct cw_message *msg)
{
	_cleanup_(message_freep) struct cw_message *back = NULL;
	_cleanup_(freep) uint8_t *buf = NULL;
	size_t len;

	cr_assert_eq(cw_message_encode(msg, &buf, &len), 0, "%s", cw_message_name(msg->type));
	cr_assert_eq(decode_frame(buf, len, &back), 0, "%s", cw_message_name(msg->type));
	cr_expect_eq(back->version, CW_WIRE_VERSION);
	cr_expect(cw_message_is_equal(msg, back), "%s", cw_message_name(msg->type));
}

Test(codec, samples_survive_a_round_trip)
{
	for (unsigned type = 1; type < CW_MSG__MAX; type++)
		expect_round_trip(cw_sample_message(type));
}

Test(codec, random_messages_survive_a_round_trip)
{
	unsigned seed = 1;

	for (int round = 0; round < 100; round++) {
		for (unsigned type = 1; type < CW_MSG__MAX; type++) {
			_cleanup_(memory_freep) struct cw_message_memory *memory =
				cw_message_memory_new(1 << 24, 0);

			expect_round_trip(cw_random_message(memory, type, &seed));
		}
	}
}

static const ProtobufCFieldDescriptor *find_pb_field(const struct cw_map *map,
						     const struct cw_field *f)
{
	for (unsigned i = 0; i < map->pb->n_fields; i++)
		if (map->pb->fields[i].offset == f->pb_offset)
			return &map->pb->fields[i];
	return NULL;
}

static size_t pb_bytes(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_SINT32:
		return 4;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return 8;
	default:
		return 0;
	}
}

static bool kind_fits(const struct cw_field *f, const ProtobufCFieldDescriptor *pb)
{
	bool repeated = pb->label == PROTOBUF_C_LABEL_REPEATED;

	switch (pb->type) {
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SINT64:
		return f->kind == CW_FIELD_INT;
	case PROTOBUF_C_TYPE_STRING:
		return f->kind == (repeated ? CW_FIELD_STRINGS : CW_FIELD_STRING);
	case PROTOBUF_C_TYPE_BYTES:
		return f->kind == CW_FIELD_JOB_KEY && !repeated;
	case PROTOBUF_C_TYPE_MESSAGE:
		return f->kind == (repeated ? CW_FIELD_LIST : CW_FIELD_MESSAGE) &&
		       f->sub->pb == pb->descriptor;
	default:
		return f->kind == (repeated ? CW_FIELD_U64S : CW_FIELD_UINT);
	}
}

static void check_map(const struct cw_map *map)
{
	cr_expect_eq(map->n_fields, map->pb->n_fields, "%s", map->pb->name);
	for (size_t i = 0; i < map->n_fields; i++) {
		const struct cw_field *f = &map->fields[i];
		const ProtobufCFieldDescriptor *pb = find_pb_field(map, f);

		cr_assert_not_null(pb, "%s field %zu", map->pb->name, i);
		cr_assert_eq(pb, &map->pb->fields[i], "%s.%s: not in the order of numbers",
			     map->pb->name, pb->name);
		cr_expect(kind_fits(f, pb), "%s.%s", map->pb->name, pb->name);
		cr_expect_eq(f->pb_bytes, f->kind <= CW_FIELD_INT ? pb_bytes(pb->type) : 0, "%s.%s",
			     map->pb->name, pb->name);
		cr_expect_leq(f->c_bytes, f->pb_bytes, "%s.%s would be cut", map->pb->name,
			      pb->name);
		for (size_t j = 0; j < i; j++)
			cr_expect(map->fields[j].pb_offset != f->pb_offset &&
				  map->fields[j].c_offset != f->c_offset);
		if (f->kind == CW_FIELD_LIST || f->kind == CW_FIELD_STRINGS ||
		    f->kind == CW_FIELD_U64S) {
			cr_expect_gt(f->max, 0u, "%s.%s has no limit", map->pb->name, pb->name);
			cr_expect_eq(f->pb_n_offset, pb->quantifier_offset);
		}
		if (f->sub)
			check_map(f->sub);
	}
}

Test(codec, every_field_of_the_protocol_is_mapped_once_and_with_its_type)
{
	for (unsigned type = 1; type < CW_MSG__MAX; type++) {
		cr_expect_gt(cw_bodies[type].number, 0u);
		check_map(cw_bodies[type].map);
	}
}

/* tests/data/wire/NAME.hex; made anew with COLLWATCH_UPDATE_GOLDEN=1 when a message is added. */
static FILE *open_golden(unsigned type, const char *mode)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/wire/%s.hex", CW_TEST_DATA, cw_message_name(type));
	return fopen(path, mode);
}

static void write_golden(unsigned type, const uint8_t *buf, size_t len)
{
	FILE *f = open_golden(type, "we");

	cr_assert_not_null(f);
	for (size_t i = 0; i < len; i++)
		(void)fprintf(f, "%02x%s", buf[i], i % 32 == 31 || i + 1 == len ? "\n" : "");
	(void)fclose(f);
}

static size_t read_golden(unsigned type, uint8_t *buf, size_t max)
{
	FILE *f = open_golden(type, "re");
	unsigned byte;
	size_t n = 0;

	cr_assert_not_null(f, "no golden bytes for %s", cw_message_name(type));
	while (n < max && fscanf(f, "%2x", &byte) == 1)
		buf[n++] = (uint8_t)byte;
	(void)fclose(f);
	return n;
}

/* Daemons of different versions talk to each other: messages of version 1 stay readable. */
Test(codec, bytes_on_the_wire_are_those_of_version_1)
{
	for (unsigned type = 1; type < CW_MSG__MAX; type++) {
		_cleanup_(message_freep) struct cw_message *back = NULL;
		_cleanup_(freep) uint8_t *buf = NULL;
		uint8_t golden[4096];
		size_t len, golden_len;

		cr_assert_eq(cw_message_encode(cw_sample_message(type), &buf, &len), 0);
		if (getenv("COLLWATCH_UPDATE_GOLDEN"))
			write_golden(type, buf, len);
		golden_len = read_golden(type, golden, sizeof(golden));
		cr_assert_eq(len, golden_len, "%s", cw_message_name(type));
		cr_expect_eq(memcmp(buf, golden, len), 0, "%s", cw_message_name(type));
		cr_assert_eq(decode_frame(golden, golden_len, &back), 0);
		cr_expect(cw_message_is_equal(cw_sample_message(type), back), "%s",
			  cw_message_name(type));
	}
}

/* Their maker sends the same to the leader and to the next one. */
Test(codec, a_digest_and_its_copy_differ_in_the_type_only)
{
	struct cw_message msg = *cw_sample_message(CW_MSG_DIGEST);
	_cleanup_(freep) uint8_t *digest = NULL, *copy = NULL, *frame = NULL;
	size_t len, copy_len;

	cr_assert_eq(cw_message_encode(&msg, &digest, &len), 0);
	cr_assert_eq(cw_message_encode(&msg, &frame, &len), 0);
	msg.type = CW_MSG_DIGEST_COPY;
	cr_assert_eq(cw_message_encode(&msg, &copy, &copy_len), 0);
	cr_assert_eq(copy_len, len);
	cw_message_set_digest_type(frame, CW_MSG_DIGEST_COPY);
	cr_expect_eq(memcmp(frame, copy, len), 0);
	cw_message_set_digest_type(frame, CW_MSG_DIGEST);
	cr_expect_eq(memcmp(frame, digest, len), 0);
}

static struct cw_message *receive_copy(const uint8_t *frame, size_t len)
{
	struct cw_message *msg = NULL;

	cr_assert_eq(cw_message_decode_received(frame + CW_FRAME_HEADER_BYTES,
						len - CW_FRAME_HEADER_BYTES, &msg),
		     0);
	return msg;
}

Test(codec, a_copy_that_is_received_has_its_ranks_once_it_is_made_whole)
{
	const struct cw_message *sent = cw_sample_message(CW_MSG_DIGEST_COPY);
	_cleanup_(message_freep) struct cw_message *back = NULL;
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;

	cr_assert_eq(cw_message_encode(sent, &frame, &len), 0);
	back = receive_copy(frame, len);
	cr_expect_not(cw_message_is_whole(back));
	cr_expect_eq(back->digest.n_ranks, sent->digest.n_ranks);
	cr_expect_str_eq(back->digest.label, sent->digest.label);
	memset(frame, 0xff, len); /* it has what it needs */
	cr_expect_eq(cw_message_make_whole(back), 0);
	cr_expect(cw_message_is_whole(back));
	cr_expect(cw_message_is_equal(sent, back));
	cr_expect_eq(cw_message_make_whole(back), 0);
	cr_expect(cw_message_is_equal(sent, back));
}

/* Its last rank ends in the middle of a number. */
Test(codec, a_copy_whose_ranks_are_malformed_has_none)
{
	static const uint8_t payload[] = { 0x08, 1, 0xb2, 0x06, 4, 0x3a, 2, 0x08, 0x80 };
	_cleanup_(message_freep) struct cw_message *back = NULL;
	uint8_t bytes[sizeof(payload)];

	memcpy(bytes, payload, sizeof(bytes));
	bytes[2] = (uint8_t)(cw_bodies[CW_MSG_DIGEST_COPY].number << 3 | 2) | 0x80;
	bytes[3] = (uint8_t)(cw_bodies[CW_MSG_DIGEST_COPY].number >> 4);
	cr_assert_eq(cw_message_decode(bytes, sizeof(bytes), &back), -EBADMSG);
	cr_assert_eq(cw_message_decode_received(bytes, sizeof(bytes), &back), 0);
	cr_expect_eq(back->digest.n_ranks, 1);
	cr_expect_eq(cw_message_make_whole(back), -EBADMSG);
	cr_expect(cw_message_is_whole(back));
	cr_expect_eq(back->digest.n_ranks, 0);
}

Test(codec, a_job_key_of_another_length_is_refused)
{
	/* Envelope { version 1, rank_search { label "a", job_key of 2 bytes } } */
	static const uint8_t bytes[] = { 0x08, 1, 0xfa, 0x01, 7, 0x12, 1, 'a', 0x22, 2, 1, 2 };
	struct cw_message *msg = NULL;

	cr_assert_eq(cw_message_decode(bytes, sizeof(bytes), &msg), -EBADMSG);
}

Test(codec, decodes_fields_into_their_places)
{
	_cleanup_(message_freep) struct cw_message *msg = NULL;
	uint8_t golden[4096];
	size_t len = read_golden(CW_MSG_DIGEST, golden, sizeof(golden));
	const struct cw_msg_member *m;

	cr_assert_eq(decode_frame(golden, len, &msg), 0);
	cr_assert_eq(msg->type, CW_MSG_DIGEST);
	cr_expect_str_eq(msg->digest.node, "node-b");
	cr_assert_eq(msg->digest.n_ranks, 1u);
	cr_expect_eq(msg->digest.ranks[0].host_activity_age_ns, -1);
	cr_assert_eq(msg->digest.ranks[0].n_members, 2u);
	m = &msg->digest.ranks[0].members[0];
	cr_expect_eq(m->split_color, -4);
	cr_expect_eq(m->pending->coll_seq, 40213u);
	cr_expect_eq(m->pending->enter_age_ns, 61000000001);
	cr_expect_eq(m->pending->result, -3);
	cr_expect_eq(m->checkpoints[1].coll_seq, 40128u);
	cr_assert_eq(m->n_last_hashes, 2u);
	cr_expect_eq(m->last_hashes[1].hash, 0x1032547698badcfeu);
	cr_expect_null(m[1].pending);
	cr_expect_str_eq(m[1].name, "");
	cr_expect_eq(m[1].n_p2p, 0u);
}

Test(codec, a_message_of_a_later_version_is_none)
{
	/* version 9, body field 63 (length 2) */
	static const uint8_t later[] = { 0x08, 9, 0xfa, 0x03, 2, 1, 2 };
	static const uint8_t only_version[] = { 0x08, 1 };
	struct cw_message *msg = NULL;

	cr_assert_eq(cw_message_decode(later, sizeof(later), &msg), 0);
	cr_expect_eq(msg->type, CW_MSG_NONE);
	cr_expect_eq(msg->version, 9u);
	msg = cw_message_free(msg);
	cr_assert_eq(cw_message_decode(only_version, sizeof(only_version), &msg), 0);
	cr_expect_eq(msg->type, CW_MSG_NONE);
	msg = cw_message_free(msg);
}

Test(codec, unknown_fields_and_versions_of_known_messages_are_read)
{
	/* version 7; AgentHello { version_min 1, unknown field 15 = 5 } */
	static const uint8_t newer[] = { 0x08, 7, 0x52, 4, 0x08, 1, 0x78, 5 };
	struct cw_message *msg = NULL;

	cr_assert_eq(cw_message_decode(newer, sizeof(newer), &msg), 0);
	cr_expect_eq(msg->type, CW_MSG_AGENT_HELLO);
	cr_expect_eq(msg->version, 7u);
	cr_expect_eq(msg->agent_hello.version_min, 1u);
	cw_message_free(msg);
}

Test(codec, numbers_that_do_not_fit_are_refused_and_later_enum_values_unknown)
{
	struct cw_msg_op op = { .kind = CW_OP_ALL_REDUCE };
	struct cw_msg_window w = { .ops = &op, .n_ops = 1 };
	struct cw_message msg = { .type = CW_MSG_WINDOW_REPLY,
				  .window_reply = { .windows = &w, .n_windows = 1 } };
	/* Envelope { version 1, window_reply { windows { ops { kind = 256 } } } } */
	static const uint8_t wide[] = {
		0x08, 1, 0xca, 0x01, 7, 0x1a, 5, 0x2a, 3, 0x08, 0x80, 0x02
	};
	struct cw_message *back = NULL;
	uint8_t *buf;
	size_t len;

	cr_expect_eq(cw_message_decode(wide, sizeof(wide), &back), -EBADMSG);
	op.progress = CW_PROGRESS_COMPLETED + 1;
	cr_assert_eq(cw_message_encode(&msg, &buf, &len), 0);
	cr_assert_eq(decode_frame(buf, len, &back), 0);
	cr_expect_eq(back->window_reply.windows[0].ops[0].progress, CW_PROGRESS_UNKNOWN);
	cw_message_free(back);
	free(buf);
}

/* Cut anywhere: refused, or fewer fields; never a read behind the end. */
Test(codec, a_message_cut_anywhere_does_no_harm)
{
	uint8_t golden[4096];
	size_t len = read_golden(CW_MSG_DIGEST, golden, sizeof(golden));

	for (size_t cut = CW_FRAME_HEADER_BYTES; cut < len; cut++) {
		size_t n = cut - CW_FRAME_HEADER_BYTES;
		struct cw_message *msg = NULL;
		uint8_t *bytes = malloc(n + 1);

		memcpy(bytes, golden + CW_FRAME_HEADER_BYTES, n);
		if (cw_message_decode(bytes, n, &msg) == 0)
			cr_expect_eq(msg->type, CW_MSG_NONE, "%zu: the body is its last field", n);
		cw_message_free(msg);
		free(bytes);
	}
}

Test(codec, text_from_the_wire_is_safe_to_print)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_REFUSED,
				  .agent_refused = { .reason = "a\x1b[2J\xff\nb" } };
	struct cw_message *back = NULL;
	uint8_t *buf;
	size_t len;

	cr_assert_eq(cw_message_encode(&msg, &buf, &len), 0);
	cr_assert_eq(decode_frame(buf, len, &back), 0);
	cr_expect_str_eq(back->agent_refused.reason, "a?[2J?\nb");
	cw_message_free(back);
	free(buf);
}

Test(codec, refuses_to_send_what_is_incomplete_or_too_big)
{
	static struct cw_msg_evidence_target many[CW_MSG_MAX_TARGETS + 1];
	struct cw_message msg = { .type = CW_MSG_CONTROL_REQUEST };
	char *text = malloc(CW_MSG_MAX_STRING + 2);
	uint8_t *buf = NULL;
	size_t len;

	cr_expect_eq(cw_message_encode(&msg, &buf, &len), -EINVAL, "verb is NULL");
	msg.control_request.verb = "status";
	cr_expect_eq(cw_message_encode(&msg, &buf, &len), 0, "json may be NULL");
	free(buf);
	memset(text, 'x', CW_MSG_MAX_STRING + 1);
	text[CW_MSG_MAX_STRING + 1] = '\0';
	msg.control_request.json = text;
	cr_expect_eq(cw_message_encode(&msg, &buf, &len), -EMSGSIZE);
	free(text);
	msg = (struct cw_message){ .type = CW_MSG_EVIDENCE_REQUEST,
				   .evidence_request = { .targets = many,
							 .n_targets = CW_MSG_MAX_TARGETS + 1 } };
	cr_expect_eq(cw_message_encode(&msg, &buf, &len), -EMSGSIZE);
	msg.evidence_request.targets = NULL;
	msg.evidence_request.n_targets = 1;
	cr_expect_eq(cw_message_encode(&msg, &buf, &len), -EINVAL);
	msg.type = CW_MSG__MAX;
	cr_expect_eq(cw_message_encode(&msg, &buf, &len), -EINVAL);
	msg.type = CW_MSG_NONE;
	cr_expect_eq(cw_message_encode(&msg, &buf, &len), -EINVAL);
}

Test(codec, a_message_larger_than_a_frame_is_refused)
{
	char *text = malloc(CW_MSG_MAX_STRING + 1);
	const char *list[4] = { text, text, text, text };
	struct cw_message msg = {
		.type = CW_MSG_MEMBERS,
		.members = { .leader = "a", .nodes = list, .n_nodes = 4 },
	};
	uint8_t *buf = NULL;
	size_t len;

	memset(text, 'x', CW_MSG_MAX_STRING);
	text[CW_MSG_MAX_STRING] = '\0';
	cr_expect_eq(cw_message_encode(&msg, &buf, &len), -EMSGSIZE);
	free(text);
}

/* Reckoned by their fields, so many ops fill more than a frame: that is measured then. */
Test(codec, a_message_that_fits_a_frame_is_sent_however_it_was_reckoned)
{
	struct cw_msg_op *ops = calloc(CW_MSG_MAX_REPLY_OPS, sizeof(*ops));
	struct cw_msg_window window = { .ops = ops, .n_ops = CW_MSG_MAX_REPLY_OPS };
	struct cw_message msg = {
		.type = CW_MSG_WINDOW_REPLY,
		.window_reply = { .windows = &window, .n_windows = 1 },
	};

	cr_assert_not_null(ops);
	for (uint32_t i = 0; i < CW_MSG_MAX_REPLY_OPS; i++)
		ops[i].op_index = i + 1;
	expect_round_trip(&msg);
	free(ops);
}

static unsigned largest_number(const ProtobufCMessageDescriptor *pb)
{
	unsigned most = 0;

	for (unsigned i = 0; i < pb->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &pb->fields[i];
		unsigned n = f->type == PROTOBUF_C_TYPE_MESSAGE ? largest_number(f->descriptor) : 0;

		most = f->id > most ? f->id : most;
		most = n > most ? n : most;
	}
	return most;
}

/* Room is reckoned for tags of two bytes: field numbers have eleven bits. */
Test(codec, tags_have_two_bytes_at_most)
{
	for (unsigned type = 1; type < CW_MSG__MAX; type++) {
		cr_expect_lt(cw_bodies[type].number, 1u << 11);
		cr_expect_lt(largest_number(cw_bodies[type].map->pb), 1u << 11, "%s",
			     cw_message_name(type));
	}
}

/* n empty elements of a list cost two bytes each on the wire and a struct each in memory. */
static int decode_empty_elements(size_t n, size_t *ret_bytes)
{
	size_t body = 2 * n, at = 0;
	uint8_t *buf = malloc(body + 16);
	struct cw_message *msg = NULL;
	int r;

	buf[at++] = 0xb2; /* digest = 22, length-delimited */
	buf[at++] = 0x01;
	for (size_t left = body;;) {
		buf[at++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
		left >>= 7;
		if (!left)
			break;
	}
	for (size_t i = 0; i < n; i++) {
		buf[at++] = 0x3a; /* ranks = 7 */
		buf[at++] = 0;
	}
	r = cw_message_decode(buf, at, &msg);
	*ret_bytes = msg ? ((struct cw_message_memory *)msg->memory)->used_bytes : 0;
	cw_message_free(msg);
	free(buf);
	return r;
}

Test(codec, memory_is_bounded_whatever_a_frame_says)
{
	size_t bytes;

	cr_expect_eq(decode_empty_elements(CW_MSG_MAX_RANKS, &bytes), 0);
	cr_expect_leq(bytes, CW_CODEC_MAX_MEMORY);
	cr_expect_eq(decode_empty_elements(CW_MSG_MAX_RANKS + 1, &bytes), -EBADMSG);
	cr_expect_eq(decode_empty_elements(500000, &bytes), -EBADMSG);
}

Test(codec, corrupted_frames_never_harm_the_decoder)
{
	unsigned seed = 99, decoded = 0;

	for (int round = 0; round < 20000; round++) {
		unsigned type = 1 + (unsigned)round % (CW_MSG__MAX - 1);
		_cleanup_(message_freep) struct cw_message *back = NULL;
		_cleanup_(freep) uint8_t *again = NULL;
		uint8_t bytes[4096];
		size_t len = read_golden(type, bytes, sizeof(bytes)), again_len;

		cr_assert_gt(len, 8); /* no half-written one */

		for (int n = rand_r(&seed) % 4; n >= 0; n--)
			bytes[4 + (unsigned)rand_r(&seed) % (len - 4)] = (uint8_t)rand_r(&seed);
		if (cw_message_decode(bytes + 4, len - 4 - (unsigned)rand_r(&seed) % 3, &back) < 0)
			continue;
		decoded++;
		if (back->type != CW_MSG_NONE)
			cr_assert_eq(cw_message_encode(back, &again, &again_len), 0,
				     "what was accepted can be sent on");
	}
	cr_expect_gt(decoded, 1000u);
}

Test(codec, names_are_never_null)
{
	for (unsigned type = 0; type < CW_MSG__MAX + 3; type++)
		cr_expect_not_null(cw_message_name(type));
	cr_expect_str_eq(cw_message_name(CW_MSG_AGENT_HELLO), "agent_hello");
	cr_expect_null(cw_message_free(NULL));
}
