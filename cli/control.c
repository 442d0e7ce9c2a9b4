/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json/json_whole.h"
#include "common/text.h"
#include "common/unixsock.h"
#include "proto/codec.h"
#include "proto/frame.h"

const char *cw_control_path(const char *arg_path)
{
	const char *from_env = getenv("COLLWATCH_CONTROL_SOCKET");

	if (arg_path)
		return arg_path;
	return from_env && *from_env ? from_env : CW_CONTROL_SOCKET;
}

static int wait_for(int fd, short events, int64_t deadline_ns)
{
	for (;;) {
		int64_t left_ns = deadline_ns - cw_clock_now_ns(&cw_clock_system);
		struct pollfd p = { .fd = fd, .events = events };
		int n;

		if (left_ns <= 0)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)(left_ns / CW_NS_PER_MS) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int send_request(int fd, const char *verb, const json_t *args, int64_t deadline_ns)
{
	_cleanup_(freep) char *json = args ? cw_json_write(args, JSON_COMPACT) : strdup("{}");
	_cleanup_(freep) uint8_t *frame = NULL;
	struct cw_message request = {
		.type = CW_MSG_CONTROL_REQUEST,
		.control_request = { .verb = verb, .json = json },
	};
	size_t len, sent = 0;
	int r;

	if (!json)
		return -ENOMEM;
	r = cw_message_encode(&request, &frame, &len);
	while (r == 0 && sent < len) {
		ssize_t n;

		r = wait_for(fd, POLLOUT, deadline_ns);
		if (r < 0)
			break;
		n = send(fd, frame + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			r = -errno;
	}
	return r;
}

/* Reads one frame and decodes it into a new message. */
static int receive_reply(int fd, int64_t deadline_ns, struct cw_message **ret)
{
	size_t size = CW_FRAME_HEADER_BYTES + CW_FRAME_MAX_BYTES, len = 0;
	_cleanup_(freep) uint8_t *buf = malloc(size);

	if (!buf)
		return -ENOMEM;
	for (;;) {
		size_t payload_len, used;
		const uint8_t *payload;
		ssize_t n;
		int r = cw_frame_parse(buf, len, &payload, &payload_len, &used);

		if (r < 0)
			return -EBADMSG;
		if (r == 0)
			return cw_message_decode(payload, payload_len, ret);
		r = wait_for(fd, POLLIN, deadline_ns);
		if (r < 0)
			return r;
		n = recv(fd, buf + len, size - len, MSG_DONTWAIT);
		if (n == 0)
			return -ECONNRESET;
		if (n > 0)
			len += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
}

static int read_reply(const struct cw_message *msg, json_t **ret_json, uint32_t *ret_code,
		      struct cw_err *err)
{
	json_error_t where;

	if (msg->type != CW_MSG_CONTROL_REPLY)
		return cw_err_set(err, EBADMSG,
				  "the daemon's answer has another type than the request needs");
	if (msg->control_reply.code == CW_EXIT_ERROR)
		return cw_err_set(err, EREMOTEIO, "%s", msg->control_reply.error);
	if (!*msg->control_reply.json && *msg->control_reply.error) {
		*ret_code = msg->control_reply.code;
		return cw_err_set(err, ENODATA, "%s", msg->control_reply.error);
	}
	*ret_json = cw_json_parse(msg->control_reply.json, strlen(msg->control_reply.json),
				  JSON_REJECT_DUPLICATES, &where);
	if (!*ret_json && errno == ENOMEM)
		return cw_err_set(err, ENOMEM, "out of memory");
	if (!*ret_json)
		return cw_err_set(err, EBADMSG, "the daemon's answer is not JSON: %s", where.text);
	*ret_code = msg->control_reply.code;
	return 0;
}

/*
 * Sets err if no daemon is running. The error suggests `doctor`, with the socket's path unless it
 * is the default.
 */
static int no_daemon(const char *path, int error, struct cw_err *err)
{
	_cleanup_(freep) char *command =
		strcmp(path, CW_CONTROL_SOCKET) != 0
			? cw_text_command("collwatch doctor --control", path)
			: NULL;

	return cw_err_set(err, error, "no daemon answers on %s: %s; run `%s` to find out why", path,
			  strerror(error), command ? command : "collwatch doctor");
}

int cw_control_ask(const char *path, const char *verb, const json_t *args, int timeout_ms,
		   json_t **ret_json, uint32_t *ret_code, struct cw_err *err)
{
	int64_t deadline_ns =
		cw_clock_now_ns(&cw_clock_system) + (int64_t)timeout_ms * CW_NS_PER_MS;
	_cleanup_(closep) int fd = cw_unix_connect(path, timeout_ms);
	struct cw_message *msg = NULL;
	int r;

	if (fd < 0)
		return no_daemon(path, -fd, err);
	r = send_request(fd, verb, args, deadline_ns);
	/*
	 * A daemon at its limit of connections sends the reason and hangs up. Our write then fails
	 * with EPIPE, but we can still read the reason.
	 */
	if (r == 0 || r == -EPIPE)
		r = receive_reply(fd, deadline_ns, &msg);
	if (r < 0)
		return cw_err_set(err, -r, "no answer from the daemon on %s: %s", path,
				  strerror(-r));
	r = read_reply(msg, ret_json, ret_code, err);
	cw_message_free(msg);
	return r;
}

int cw_control_ask_status(const char *path, json_t **ret_json, uint32_t *ret_code,
			  struct cw_err *err)
{
	json_t *args = json_pack("{s:b}", "leaders", 1);
	int r = args ? cw_control_ask(path, "status", args, CW_CONTROL_STATUS_MS, ret_json,
				      ret_code, err)
		     : cw_err_set(err, ENOMEM, "out of memory");

	json_decref(args);
	return r;
}
