/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: hostile_agent SOCKET SEED ATTACK
 *
 * Runs one attack until SIGTERM, then prints its outcome as a JSON object. tests/e2e/
 * test_hostile.py runs all of them against a daemon that watches another user's job meanwhile.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/unixsock.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/stress/hostile.h"

#define MAX_SENT_FDS 64u
#define PATIENCE_MS 60000 /* longer than the daemon waits for a hello, on a busy machine */

static volatile sig_atomic_t is_over;

bool hostile_goes_on(void)
{
	return !is_over;
}

uint64_t hostile_random(struct hostile *h)
{
	uint64_t v = 0;

	for (int i = 0; i < 3; i++)
		v = v << 24 ^ (uint64_t)rand_r(&h->seed);
	return v;
}

int hostile_connect(const struct hostile *h)
{
	return cw_unix_connect(h->path, 1000);
}

bool hostile_send(int conn, const void *data, size_t len, const int *fds, unsigned n)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MAX_SENT_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n > 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	return sendmsg(conn, &msg, MSG_NOSIGNAL) == (ssize_t)len;
}

size_t hostile_hello(uint8_t *buf)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_HELLO,
				  .agent_hello = { .version_min = CW_WIRE_VERSION,
						   .version_max = CW_WIRE_VERSION,
						   .record_bytes = 1 << 20 } };
	uint8_t *frame;
	size_t len;

	if (cw_message_encode(&msg, &frame, &len) < 0)
		abort();
	memcpy(buf, frame, len);
	free(frame);
	return len;
}

static enum answer answer_in(const uint8_t *buf, size_t len)
{
	enum answer answer = ANSWER_NONE;
	struct cw_message *msg = NULL;
	const uint8_t *payload;
	size_t payload_len, used;

	if (cw_frame_parse(buf, len, &payload, &payload_len, &used) == 0 &&
	    cw_message_decode(payload, payload_len, &msg) == 0) {
		if (msg->type == CW_MSG_AGENT_WELCOME)
			answer = ANSWER_WELCOME;
		if (msg->type == CW_MSG_AGENT_REFUSED)
			answer = ANSWER_REFUSED;
	}
	(void)cw_message_free(msg); /* always NULL */
	return answer;
}

enum answer hostile_answer(int conn, int timeout_ms)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };
	uint8_t buf[512];
	size_t have = 0;

	while (have < sizeof(buf) && poll(&p, 1, timeout_ms) == 1) {
		ssize_t n = recv(conn, buf + have, sizeof(buf) - have, 0);
		enum answer answer;

		if (n <= 0)
			return ANSWER_CLOSED;
		have += (size_t)n;
		answer = answer_in(buf, have);
		if (answer != ANSWER_NONE)
			return answer;
	}
	return ANSWER_NONE;
}

void hostile_expect_refusal(struct hostile *h, int conn)
{
	h->tried++;
	switch (hostile_answer(conn, PATIENCE_MS)) {
	case ANSWER_REFUSED:
		h->refused++;
		break;
	case ANSWER_CLOSED:
		h->closed++;
		break;
	case ANSWER_WELCOME:
		h->wrong++;
		break;
	case ANSWER_NONE:
		h->silent += !is_over; /* else it was not waited for */
		break;
	}
	(void)close(conn);
}

static void on_term(int sig)
{
	is_over = 1;
}

static const struct {
	const char *name;
	void (*run)(struct hostile *h);
} attacks[] = {
	{ "frames", hostile_frames },   { "loris", hostile_loris },
	{ "flood", hostile_flood },     { "descriptors", hostile_descriptors },
	{ "records", hostile_records }, { "messages", hostile_messages },
};

static bool run(const char *name, struct hostile *h)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(attacks[i].name, name) == 0) {
			attacks[i].run(h);
			return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_term }; /* no SA_RESTART: waits end */
	struct hostile h = { 0 };
	struct rlimit limit;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: hostile_agent SOCKET SEED ATTACK\n");
		return 1;
	}
	h.path = argv[1];
	h.seed = (unsigned)strtoul(argv[2], NULL, 10);
	(void)sigaction(SIGTERM, &action, NULL); /* cannot fail for a valid signal */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* else fewer connections at once */
	}
	if (!run(argv[3], &h)) {
		(void)fprintf(stderr, "hostile_agent: no such attack: %s\n", argv[3]);
		return 1;
	}
	printf("{\"attack\":\"%s\",\"tried\":%llu,\"refused\":%llu,\"closed\":%llu,"
	       "\"welcomed\":%llu,\"silent\":%llu,\"wrong\":%llu,\"fuse\":\"%s\"}\n",
	       argv[3], (unsigned long long)h.tried, (unsigned long long)h.refused,
	       (unsigned long long)h.closed, (unsigned long long)h.welcomed,
	       (unsigned long long)h.silent, (unsigned long long)h.wrong, h.fuse);
	return 0;
}
