/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/unixsock.h"
#include "proto/codec.h"
#include "proto/frame.h"

/* Deadline of an answer. */
#define DEADLINE_MS 120000

/* A daemon that answers one connection with prepared bytes, in two pieces, and notes the question.
 */
struct server {
	char dir[32], path[64];
	int listener;
	pthread_t thread;
	uint8_t *answer;
	size_t len;
	bool hang_up;
	char verb[64], json[256];
};

static void read_request(struct server *s, int fd)
{
	uint8_t buf[4096];
	size_t len = 0, payload_len, used;
	const uint8_t *payload;
	struct cw_message *msg;

	while (cw_frame_parse(buf, len, &payload, &payload_len, &used) == CW_FRAME_NEED_MORE) {
		ssize_t n = read(fd, buf + len, sizeof(buf) - len);

		if (n <= 0)
			return;
		len += (size_t)n;
	}
	if (cw_message_decode(payload, payload_len, &msg) < 0)
		return;
	if (msg->type == CW_MSG_CONTROL_REQUEST) {
		snprintf(s->verb, sizeof(s->verb), "%s", msg->control_request.verb);
		snprintf(s->json, sizeof(s->json), "%s", msg->control_request.json);
	}
	cw_message_free(msg);
}

static void *serve(void *user)
{
	struct server *s = user;
	int fd = accept(s->listener, NULL, NULL);
	size_t half = s->len / 2;
	char byte;

	if (fd < 0)
		return NULL;
	read_request(s, fd);
	if (!s->hang_up) {
		(void)!send(fd, s->answer, half, MSG_NOSIGNAL);
		(void)!send(fd, s->answer + half, s->len - half, MSG_NOSIGNAL);
		(void)!read(fd, &byte, 1); /* until the client has gone */
	}
	close(fd);
	return NULL;
}

static void start(struct server *s)
{
	snprintf(s->dir, sizeof(s->dir), "/tmp/test_control.XXXXXX");
	cr_assert_not_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/control.sock", s->dir);
	s->listener = cw_unix_listen(s->path, 0600, (gid_t)-1, NULL);
	cr_assert_geq(s->listener, 0);
	cr_assert_eq(fcntl(s->listener, F_SETFL, 0), 0);
	cr_assert_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
	/* wakes accept() if no client came */
	(void)shutdown(s->listener, SHUT_RDWR);
	cr_assert_eq(pthread_join(s->thread, NULL), 0);
	close(s->listener);
	unlink(s->path);
	rmdir(s->dir);
	free(s->answer);
}

static void prepare(struct server *s, uint32_t code, const char *json, const char *error)
{
	struct cw_message reply = {
		.type = CW_MSG_CONTROL_REPLY,
		.control_reply = { .code = code, .json = json, .error = error },
	};

	cr_assert_eq(cw_message_encode(&reply, &s->answer, &s->len), 0);
}

Test(cli_control, brings_the_answer_and_its_code)
{
	json_t *args = json_pack("{s:s}", "id", "abc"), *answer = NULL;
	struct server s = { 0 };
	struct cw_err err = { "" };
	uint32_t code = 0;

	prepare(&s, 2, "{\"a\":1}", "");
	start(&s);
	cr_assert_eq(cw_control_ask(s.path, "report", args, DEADLINE_MS, &answer, &code, &err), 0,
		     "%s", err.text);
	cr_assert_eq(code, 2);
	cr_assert_eq(json_integer_value(json_object_get(answer, "a")), 1);
	stop(&s);
	cr_assert_str_eq(s.verb, "report");
	cr_assert_str_eq(s.json, "{\"id\":\"abc\"}");
	json_decref(args);
	json_decref(answer);
}

Test(cli_control, passes_on_what_the_daemon_complains_about)
{
	struct server s = { 0 };
	json_t *answer = NULL;
	struct cw_err err = { "" };
	uint32_t code;

	prepare(&s, 1, "{}", "no such incident");
	start(&s);
	cr_assert_eq(cw_control_ask(s.path, "report", NULL, DEADLINE_MS, &answer, &code, &err),
		     -EREMOTEIO);
	cr_assert_str_eq(err.text, "no such incident");
	cr_assert_null(answer);
	stop(&s);
}

static void refuse(struct server *s, int expected, int timeout_ms)
{
	json_t *answer = NULL;
	struct cw_err err = { "" };
	uint32_t code;

	start(s);
	cr_assert_eq(cw_control_ask(s->path, "status", NULL, timeout_ms, &answer, &code, &err),
		     expected, "%s", err.text);
	cr_assert_null(answer);
	cr_assert_neq(err.text[0], '\0');
	stop(s);
}

Test(cli_control, refuses_answers_that_are_none)
{
	struct server text = { .answer = (uint8_t *)strdup("HTTP/1.1 200 OK\r\n\r\n"), .len = 19 };
	struct server no_json = { 0 }, other = { 0 };
	struct cw_message goodbye = { .type = CW_MSG_PEER_GOODBYE, .peer_goodbye = { "x" } };

	refuse(&text, -EBADMSG, DEADLINE_MS);
	prepare(&no_json, 0, "{", "");
	refuse(&no_json, -EBADMSG, DEADLINE_MS);
	cr_assert_eq(cw_message_encode(&goodbye, &other.answer, &other.len), 0);
	refuse(&other, -EBADMSG, DEADLINE_MS);
}

Test(cli_control, does_not_wait_for_ever)
{
	struct server silent = { 0 }, gone = { .hang_up = true };

	refuse(&silent, -ETIMEDOUT, 50);
	refuse(&gone, -ECONNRESET, DEADLINE_MS);
}

Test(cli_control, says_that_no_daemon_is_there)
{
	json_t *answer = NULL;
	struct cw_err err = { "" };
	uint32_t code;

	cr_assert_eq(
		cw_control_ask("/nowhere/control.sock", "status", NULL, 100, &answer, &code, &err),
		-ENOENT);
	cr_assert_not_null(strstr(err.text, "collwatch doctor"));
}

Test(cli_control, the_option_comes_before_the_environment)
{
	cr_assert_eq(setenv("COLLWATCH_CONTROL_SOCKET", "/from/env", 1), 0);
	cr_assert_str_eq(cw_control_path(NULL), "/from/env");
	cr_assert_str_eq(cw_control_path("/from/option"), "/from/option");
	cr_assert_eq(unsetenv("COLLWATCH_CONTROL_SOCKET"), 0);
	cr_assert_str_eq(cw_control_path(NULL), CW_CONTROL_SOCKET);
}
