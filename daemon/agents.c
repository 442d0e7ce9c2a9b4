/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agents.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
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
#define MAX_ACCEPTS_PER_TURN 16

enum conn_state {
	CONN_HELLO,    /* nothing complete yet */
	CONN_CHECKING, /* hello handed up, no answer yet */
	CONN_ADMITTED,
};

struct cw_agent_conn {
	struct cw_agents *agents;
	int fd;
	struct cw_peer_cred cred;
	enum conn_state state;
	bool is_busy, is_closed; /* freed only when no callback of ours is on the stack */
	bool expects_long;
	unsigned bad_messages;
	struct event *read_event, *write_event, *deadline_event;
	struct evbuffer *in, *out;
	void *owner;
	struct cw_agent_conn *prev, *next;
};

struct cw_agents {
	struct cw_agents_config config;
	struct event *listen_event, *resume_event;
	struct cw_agent_conn *conns;
	struct cw_agents_stats stats;
};

/* ---- one connection ---- */

static void conn_free(struct cw_agent_conn *conn)
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
	DL_DELETE(conn->agents->conns, conn);
	conn->agents->stats.connections--;
	if (conn->is_busy) {
		(void)event_del(conn->read_event); /* fails only for events never set up */
		return;
	}
	conn_free(conn);
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
		conn_free(conn);
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

static void on_writable(evutil_socket_t fd, short what, void *arg)
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

void cw_agent_conn_admit(struct cw_agent_conn *conn)
{
	struct cw_message msg = {
		.type = CW_MSG_AGENT_WELCOME,
		.agent_welcome = { .version = CW_WIRE_VERSION,
				   .daemon = conn->agents->config.daemon },
	};

	conn->state = CONN_ADMITTED;
	(void)event_del(conn->deadline_event); /* fails only for events never set up */
	if (event_add(conn->read_event, NULL) < 0)
		log_warn("agent pid=%d: cannot wait for its messages, ignoring",
			 (int)conn->cred.pid);
	if (cw_agent_conn_send(conn, &msg) < 0)
		log_debug("welcome to pid %d not sent, ignoring", (int)conn->cred.pid);
}

void cw_agent_conn_put_off(struct cw_agent_conn *conn, const char *reason)
{
	conn->agents->stats.refused++;
	log_debug("agent pid=%d uid=%u put off: %s", (int)conn->cred.pid, (unsigned)conn->cred.uid,
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

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agent_conn *conn = arg;

	conn_enter(conn);
	if (conn->state == CONN_HELLO)
		peek_hello(conn);
	else
		conn_read(conn);
	conn_leave(conn);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agent_conn *conn = arg;
	const struct cw_agents_config *config = &conn->agents->config;

	conn_enter(conn);
	if (conn->state == CONN_CHECKING)
		config->on_closed(conn, config->user);
	if (!conn->is_closed)
		cw_agent_conn_refuse(conn, "no complete hello in time");
	conn_leave(conn);
}

/* ---- accepting ---- */

static uint32_t conns_of_uid(const struct cw_agents *agents, uid_t uid)
{
	const struct cw_agent_conn *conn;
	uint32_t n = 0;

	DL_FOREACH (agents->conns, conn)
		n += conn->cred.uid == uid;
	return n;
}

static struct cw_agent_conn *conn_new(struct cw_agents *agents, int fd)
{
	struct event_base *base = agents->config.base;
	struct cw_agent_conn *conn = calloc(1, sizeof(*conn));
	int r;

	if (!conn) {
		closep(&fd);
		return NULL;
	}
	conn->agents = agents;
	conn->fd = fd;
	conn->cred.pidfd = -1;
	r = cw_unix_peer(fd, &conn->cred);
	if (r < 0) {
		conn->cred.pidfd = -1;
		conn_free(conn);
		return NULL;
	}
	conn->in = evbuffer_new();
	conn->out = evbuffer_new();
	conn->read_event = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, conn);
	conn->write_event = event_new(base, fd, EV_WRITE, on_writable, conn);
	conn->deadline_event = evtimer_new(base, on_deadline, conn);
	if (!conn->in || !conn->out || !conn->read_event || !conn->write_event ||
	    !conn->deadline_event || event_add(conn->read_event, NULL) < 0) {
		conn_free(conn);
		return NULL;
	}
	return conn;
}

static void welcome_stranger(struct cw_agents *agents, int fd)
{
	const struct cw_agents_config *config = &agents->config;
	struct timeval deadline = { .tv_sec = config->hello_ms / 1000,
				    .tv_usec = config->hello_ms % 1000 * 1000 };
	struct cw_agent_conn *conn = conn_new(agents, fd);

	if (!conn) {
		agents->stats.refused++;
		return;
	}
	DL_APPEND(agents->conns, conn);
	agents->stats.connections++;
	if (conns_of_uid(agents, conn->cred.uid) > config->max_conns_per_uid)
		cw_agent_conn_refuse(conn, "too many connections of this user");
	else if (agents->stats.connections > config->max_conns)
		cw_agent_conn_put_off(conn, "too many connections");
	else if (event_add(conn->deadline_event, &deadline) < 0)
		cw_agent_conn_put_off(conn, "out of memory");
}

static void on_connection(evutil_socket_t listen_fd, short what, void *arg)
{
	struct cw_agents *agents = arg;
	struct timeval pause = { .tv_sec = 1 };

	for (int i = 0; i < MAX_ACCEPTS_PER_TURN; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			welcome_stranger(agents, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			/* Level-triggered: without a pause the loop would spin on it. */
			log_warn("agent socket: accept: %m, pausing for 1 s");
			(void)event_del(agents->listen_event);         /* it is set up */
			(void)event_add(agents->resume_event, &pause); /* has memory already */
		}
		return;
	}
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agents *agents = arg;

	if (event_add(agents->listen_event, NULL) < 0)
		log_err("agent socket: cannot resume listening: %m");
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
					 on_connection, agents);
	agents->resume_event = evtimer_new(config->base, on_resume, agents);
	if (!agents->listen_event || !agents->resume_event ||
	    event_add(agents->listen_event, NULL) < 0) {
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
	if (agents->resume_event)
		event_free(agents->resume_event);
	closep(&agents->config.listen_fd);
	free(agents);
	return NULL;
}

void cw_agents_stats(const struct cw_agents *agents, struct cw_agents_stats *ret)
{
	*ret = agents->stats;
}
