/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agents/agents.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/agents/agents_private.h"
#include "daemon/system/accept_pause.h"
#include "proto/codec.h"
#include "proto/frame.h"

/* One read per turn: big enough for any message but a page of Python stacks. */
#define READ_BYTES (16u << 10)
#define MAX_HELLO_BYTES 256u
/* Nothing an agent says unasked is longer. */
#define SHORT_FRAME_BYTES 4096u
/* Requests are ~20 bytes each: an agent that leaves this much unread has stopped reading. */
#define MAX_UNSENT_BYTES (64u << 10)
/* Room for agents of newer versions to say things we do not know; an attacker gets no more. */
#define MAX_BAD_MESSAGES 64

/* ---- one connection ---- */

void cw_agent_conn_free(struct cw_agent_conn *conn)
{
	if (conn->read_event)
		event_free(conn->read_event);
	if (conn->write_event)
		event_free(conn->write_event);
	if (conn->deadline_event)
		event_free(conn->deadline_event);
	if (conn->in)
		evbuffer_free(conn->in);
	if (conn->out)
		evbuffer_free(conn->out);
	closep(&conn->fd);
	closep(&conn->cred.pidfd);
	free(conn);
}

void cw_agent_conn_close(struct cw_agent_conn *conn)
{
	if (conn->is_closed)
		return;
	conn->is_closed = true;
	cw_agents_forget(conn);
	if (conn->is_busy) {
		(void)event_del(conn->read_event); /* fails only for events never set up */
		return;
	}
	cw_agent_conn_free(conn);
}

/* Closes and tells the owner. */
static void conn_drop(struct cw_agent_conn *conn)
{
	const struct cw_agents_config *config = &conn->agents->config;

	if (conn->is_closed)
		return;
	if (conn->state != CONN_HELLO)
		config->on_closed(conn, config->user);
	cw_agent_conn_close(conn);
}

static void conn_enter(struct cw_agent_conn *conn)
{
	conn->is_busy = true;
}

static void conn_leave(struct cw_agent_conn *conn)
{
	conn->is_busy = false;
	if (conn->is_closed)
		cw_agent_conn_free(conn);
}

static void flush(struct cw_agent_conn *conn)
{
	while (evbuffer_get_length(conn->out) > 0) {
		unsigned char *data = evbuffer_pullup(conn->out, -1);
		ssize_t n;

		if (!data)
			return; /* out of memory: the write event tries again */
		n = send(conn->fd, data, evbuffer_get_length(conn->out),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			break; /* full, or gone: then the read side sees the end */
		(void)evbuffer_drain(conn->out, (size_t)n); /* n is at most its length */
	}
	if (evbuffer_get_length(conn->out) > 0)
		(void)event_add(conn->write_event, NULL); /* else said again with the next send */
}

void cw_agent_conn_on_writable(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

int cw_agent_conn_send(struct cw_agent_conn *conn, const struct cw_message *msg)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t len;
	int r;

	if (conn->is_closed)
		return -ENOTCONN;
	r = cw_message_encode(msg, &bytes, &len);
	if (r < 0)
		return r;
	if (evbuffer_get_length(conn->out) + len > MAX_UNSENT_BYTES)
		return -EAGAIN;
	if (evbuffer_add(conn->out, bytes, len) < 0)
		return -ENOMEM;
	flush(conn);
	return 0;
}

int cw_agent_conn_fd(const struct cw_agent_conn *conn)
{
	return conn->fd;
}

struct cw_peer_cred *cw_agent_conn_cred(struct cw_agent_conn *conn)
{
	return &conn->cred;
}

void cw_agent_conn_set_owner(struct cw_agent_conn *conn, void *owner)
{
	conn->owner = owner;
}

void *cw_agent_conn_owner(const struct cw_agent_conn *conn)
{
	return conn->owner;
}

void cw_agent_conn_set_registration(struct cw_agent_conn *conn, void *registration)
{
	conn->registration = registration;
}

void *cw_agent_conn_registration(const struct cw_agent_conn *conn)
{
	return conn->registration;
}

bool cw_agent_conn_is_gone(const struct cw_agent_conn *conn)
{
	struct pollfd p = { .fd = conn->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1;
}

void cw_agent_conn_admit(struct cw_agent_conn *conn)
{
	struct cw_message msg = {
		.type = CW_MSG_AGENT_WELCOME,
		.agent_welcome = { .version = CW_WIRE_VERSION,
				   .daemon = conn->agents->config.daemon },
	};

	conn->state = CONN_ADMITTED;
	cw_agents_admitted(conn);
	if (event_add(conn->read_event, NULL) < 0)
		log_warn("agent pid=%d: cannot wait for its messages, ignoring",
			 (int)conn->cred.pid);
	if (cw_agent_conn_send(conn, &msg) < 0)
		log_debug("welcome to pid %d not sent, ignoring", (int)conn->cred.pid);
}

void cw_agent_conn_defer(struct cw_agent_conn *conn, const char *reason)
{
	conn->agents->stats.deferred++;
	log_debug("agent pid=%d uid=%u deferred: %s", (int)conn->cred.pid, (unsigned)conn->cred.uid,
		  reason);
	cw_agent_conn_close(conn);
}

void cw_agent_conn_refuse(struct cw_agent_conn *conn, const char *reason)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_REFUSED,
				  .agent_refused = { .reason = reason } };

	conn->agents->stats.refused++;
	log_debug("agent pid=%d uid=%u refused: %s", (int)conn->cred.pid, (unsigned)conn->cred.uid,
		  reason);
	(void)cw_agent_conn_send(conn, &msg); /* best effort: the connection ends anyway */
	cw_agent_conn_close(conn);
}

void cw_agent_conn_expect_long(struct cw_agent_conn *conn)
{
	conn->expects_long = true;
}

void cw_agent_conn_bad_message(struct cw_agent_conn *conn)
{
	conn->agents->stats.bad_messages++;
	if (++conn->bad_messages > MAX_BAD_MESSAGES)
		conn_drop(conn);
}

/* ---- the hello ---- */

static void take_hello(struct cw_agent_conn *conn, const struct cw_message *msg, size_t frame_len)
{
	const struct cw_agents_config *config = &conn->agents->config;
	const struct cw_msg_agent_hello *hello = &msg->agent_hello;

	if (msg->type != CW_MSG_AGENT_HELLO) {
		conn->agents->stats.bad_messages++;
		cw_agent_conn_refuse(conn, "the first message must be a hello");
		return;
	}
	if (hello->version_min > CW_WIRE_VERSION || hello->version_max < CW_WIRE_VERSION_MIN) {
		cw_agent_conn_refuse(conn, "no common protocol version");
		return;
	}
	conn->state = CONN_CHECKING;
	/* The clock was the agent's: from here on it waits for us. */
	(void)event_del(conn->deadline_event); /* it is set up */
	cw_agents_heard(conn);
	/* What was peeked at stays readable: without this the loop would spin on it. */
	(void)event_del(conn->read_event); /* it is set up */
	config->on_hello(conn, hello, frame_len, config->user);
}

/*
 * A hello is one message of ~30 bytes with a descriptor, sent at once: it is there as a whole or it
 * is none. Nothing is taken out of the socket here.
 */
static void peek_hello(struct cw_agent_conn *conn)
{
	uint8_t buf[CW_FRAME_HEADER_BYTES + MAX_HELLO_BYTES];
	struct cw_message *msg = NULL;
	const uint8_t *payload;
	size_t len, used;
	ssize_t n;
	int r;

	n = recv(conn->fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		cw_agent_conn_close(conn);
		return;
	}
	r = cw_frame_parse(buf, (size_t)n, &payload, &len, &used);
	if (r == 0)
		r = cw_message_decode(payload, len, &msg);
	if (r == 0) {
		take_hello(conn, msg, used);
	} else {
		conn->agents->stats.bad_messages++;
		cw_agent_conn_refuse(conn, "malformed hello");
	}
	(void)cw_message_free(msg); /* always NULL */
}

/* ---- messages of admitted agents ---- */

/* Handles the first frame in conn->in. 0, CW_FRAME_NEED_MORE, or -EMSGSIZE/-EBADMSG/-ENOMEM. */
static int take_frame(struct cw_agent_conn *conn)
{
	const struct cw_agents_config *config = &conn->agents->config;
	size_t max = conn->expects_long ? CW_FRAME_MAX_BYTES : SHORT_FRAME_BYTES;
	size_t len = evbuffer_get_length(conn->in), used, payload_len;
	struct cw_message *msg = NULL;
	const uint8_t *data, *payload;
	uint32_t claimed;
	int r;

	if (len < CW_FRAME_HEADER_BYTES)
		return CW_FRAME_NEED_MORE;
	if (evbuffer_copyout(conn->in, &claimed, sizeof(claimed)) != sizeof(claimed))
		return -ENOMEM;
	claimed = ntohl(claimed);
	if (claimed == 0 || claimed > max)
		return -EMSGSIZE;
	if (len < CW_FRAME_HEADER_BYTES + claimed)
		return CW_FRAME_NEED_MORE; /* without joining the pieces again and again */
	data = evbuffer_pullup(conn->in, (ssize_t)(CW_FRAME_HEADER_BYTES + claimed));
	if (!data)
		return -ENOMEM;
	r = cw_frame_parse(data, CW_FRAME_HEADER_BYTES + claimed, &payload, &payload_len, &used);
	if (r != 0)
		return r;
	r = cw_message_decode(payload, payload_len, &msg);
	(void)evbuffer_drain(conn->in, used); /* used is at most its length */
	if (r < 0)
		return r;
	if (msg->type == CW_MSG_NONE) /* of a newer version */
		cw_agent_conn_bad_message(conn);
	else
		config->on_message(conn, msg, config->user);
	(void)cw_message_free(msg); /* always NULL */
	return 0;
}

static void conn_read(struct cw_agent_conn *conn)
{
	uint8_t buf[READ_BYTES];
	ssize_t n;
	int r = 0;

	n = recv(conn->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || evbuffer_add(conn->in, buf, (size_t)n) < 0) {
		conn_drop(conn);
		return;
	}
	while (!conn->is_closed && r == 0)
		r = take_frame(conn);
	if (r >= 0 || conn->is_closed)
		return;
	conn->agents->stats.bad_messages++;
	conn_drop(conn);
}

void cw_agent_conn_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agent_conn *conn = arg;

	conn_enter(conn);
	if (conn->state == CONN_HELLO)
		peek_hello(conn);
	else
		conn_read(conn);
	conn_leave(conn);
}

void cw_agent_conn_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agent_conn *conn = arg;

	conn_enter(conn);
	peek_hello(conn); /* it may be there, and we are late */
	if (!conn->is_closed && conn->state == CONN_HELLO)
		cw_agent_conn_refuse(conn, "no hello in time");
	conn_leave(conn);
}

int cw_agents_new(const struct cw_agents_config *config, struct cw_agents **ret)
{
	struct cw_agents *agents = calloc(1, sizeof(*agents));

	if (!agents) {
		(void)close(config->listen_fd); /* taken */
		return -ENOMEM;
	}
	agents->config = *config;
	agents->listen_event = event_new(config->base, config->listen_fd, EV_READ | EV_PERSIST,
					 cw_agents_on_connection, agents);
	if (!agents->listen_event || event_add(agents->listen_event, NULL) < 0 ||
	    cw_accept_pause_new(config->base, CW_LISTENER_AGENT, cw_agents_switch, agents,
				&agents->pause) < 0) {
		(void)cw_agents_free(agents); /* always NULL */
		return -ENOMEM;
	}
	*ret = agents;
	return 0;
}

struct cw_agents *cw_agents_free(struct cw_agents *agents)
{
	if (!agents)
		return NULL;
	while (agents->conns)
		cw_agent_conn_close(agents->conns);
	if (agents->listen_event)
		event_free(agents->listen_event);
	cw_accept_pause_free(agents->pause);
	closep(&agents->config.listen_fd);
	free(agents);
	return NULL;
}

void cw_agents_stats(const struct cw_agents *agents, struct cw_agents_stats *ret)
{
	*ret = agents->stats;
}
