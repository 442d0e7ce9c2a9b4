/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks with bytes and connections: malformed first words, slow ones, very many. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/codec.h"
#include "tests/stress/hostile.h"
#include "tests/support/messages/messages.h"
#include "tests/support/record/record_writer.h"

#define LORIS_CONNECTIONS 256
#define FLOOD_CONNECTIONS 3000

/* Length, then the payload; the length may lie. */
static size_t frame(uint8_t *buf, uint32_t length, const void *payload, size_t len)
{
	uint32_t n = htonl(length);

	memcpy(buf, &n, sizeof(n));
	memcpy(buf + sizeof(n), payload, len);
	return sizeof(n) + len;
}

static size_t oversize(struct hostile *h, uint8_t *buf)
{
	return frame(buf, (uint32_t)(UINT32_MAX - hostile_random(h) % 1024), "x", 1);
}

static size_t just_too_long(struct hostile *h, uint8_t *buf)
{
	return frame(buf, (1 << 20) + 1, "x", 1);
}

static size_t empty(struct hostile *h, uint8_t *buf)
{
	return frame(buf, 0, "", 0);
}

static size_t truncated(struct hostile *h, uint8_t *buf)
{
	size_t len = hostile_hello(buf);

	return 1 + hostile_random(h) % (len - 1);
}

static size_t garbage(struct hostile *h, uint8_t *buf)
{
	uint8_t junk[200];
	size_t len = 1 + hostile_random(h) % sizeof(junk);

	for (size_t i = 0; i < len; i++)
		junk[i] = (uint8_t)hostile_random(h);
	return frame(buf, (uint32_t)len, junk, len);
}

/* A correct hello with a few bits turned. No descriptor comes with it: it cannot be right. */
static size_t bent_hello(struct hostile *h, uint8_t *buf)
{
	size_t len = hostile_hello(buf);

	for (unsigned i = hostile_random(h) % 4; i < 4; i++)
		buf[hostile_random(h) % len] ^= (uint8_t)(1 << hostile_random(h) % 8);
	return len;
}

/* Envelope{version=1, field 99 = {}}: of a version to come. */
static size_t unknown_message(struct hostile *h, uint8_t *buf)
{
	static const uint8_t payload[] = { 0x08, 0x01, 0x9a, 0x06, 0x00 };

	return frame(buf, sizeof(payload), payload, sizeof(payload));
}

static size_t other_versions(struct hostile *h, uint8_t *buf)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_HELLO,
				  .agent_hello = { .version_min = CW_WIRE_VERSION + 1,
						   .version_max = UINT32_MAX,
						   .record_bytes = hostile_random(h) } };
	uint8_t *bytes;
	size_t len;

	if (cw_message_encode(&msg, &bytes, &len) < 0)
		abort();
	memcpy(buf, bytes, len);
	free(bytes);
	return len;
}

/* Any message but a hello, the peers' and the control socket's among them. */
static size_t wrong_first(struct hostile *h, uint8_t *buf)
{
	unsigned type = 1 + (unsigned)(hostile_random(h) % (CW_MSG__MAX - 1));
	uint8_t *bytes;
	size_t len;

	if (type == CW_MSG_AGENT_HELLO)
		type = CW_MSG_DIGEST;
	if (cw_message_encode(cw_sample_message(type), &bytes, &len) < 0)
		abort();
	if (len > 4000)
		len = 4000;
	memcpy(buf, bytes, len);
	free(bytes);
	return len;
}

void hostile_frames(struct hostile *h)
{
	static size_t (*const kinds[])(struct hostile * h, uint8_t * buf) = {
		oversize,   just_too_long,   empty,          truncated,   garbage,
		bent_hello, unknown_message, other_versions, wrong_first,
	};
	uint8_t buf[4096];

	for (unsigned i = 0; hostile_goes_on(); i++) {
		int conn = hostile_connect(h);
		size_t len = kinds[i % (sizeof(kinds) / sizeof(kinds[0]))](h, buf);

		if (conn < 0)
			continue;
		(void)hostile_send(conn, buf, len, NULL, 0); /* gone: that is the answer */
		hostile_expect_refusal(h, conn);
	}
}

/* Many connections that say a byte now and then: each must be ended by the deadline. */
void hostile_loris(struct hostile *h)
{
	static int conns[LORIS_CONNECTIONS];
	uint8_t hello[64];

	(void)hostile_hello(hello);
	while (hostile_goes_on()) {
		for (int i = 0; i < LORIS_CONNECTIONS; i++)
			conns[i] = hostile_connect(h);
		for (size_t byte = 0; byte < 3; byte++)
			for (int i = 0; i < LORIS_CONNECTIONS; i++)
				if (conns[i] >= 0)
					(void)hostile_send(conns[i], hello + byte, 1, NULL, 0);
		for (int i = 0; i < LORIS_CONNECTIONS; i++)
			if (conns[i] >= 0)
				hostile_expect_refusal(h, conns[i]);
	}
}

/* As many as there is room for, held; then as fast as it goes. */
void hostile_flood(struct hostile *h)
{
	static int conns[FLOOD_CONNECTIONS];

	while (hostile_goes_on()) {
		for (int i = 0; i < FLOOD_CONNECTIONS && hostile_goes_on(); i++) {
			conns[i] = hostile_connect(h);
			h->tried += conns[i] >= 0;
		}
		for (int i = 0; i < FLOOD_CONNECTIONS; i++) {
			if (conns[i] > 0)
				(void)close(conns[i]);
			conns[i] = -1;
		}
	}
}

static bool flood_with(struct hostile *h, int conn, unsigned type)
{
	uint8_t *bytes;
	size_t len;
	bool ok;

	if (cw_message_encode(cw_sample_message(type), &bytes, &len) < 0)
		abort();
	ok = hostile_send(conn, bytes, len, NULL, 0);
	free(bytes);
	return ok;
}

/* Lets itself in, with a good record, and then talks nonsense until it is thrown out. */
void hostile_messages(struct hostile *h)
{
	struct cw_test_record *rec = cw_test_record_new();
	uint8_t hello[64];
	size_t len = hostile_hello(hello);

	while (hostile_goes_on()) {
		int conn = hostile_connect(h);

		if (conn < 0)
			continue;
		h->tried++;
		if (hostile_send(conn, hello, len, &rec->fd, 1) &&
		    hostile_answer(conn, 4000) == ANSWER_WELCOME) {
			h->welcomed++;
			while (hostile_goes_on() &&
			       flood_with(h, conn, 1 + hostile_random(h) % (CW_MSG__MAX - 1)))
				;
		}
		(void)close(conn);
	}
	(void)cw_test_record_free(rec); /* always NULL */
}
