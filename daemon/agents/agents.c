/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from accept to close. Most connections of a flood end at admission, before they cost
 * memory or time. Then come the messages, and the end of the connection.
 *
 * A process needs one connection. If it makes another before it has sent a hello, we close the
 * older one. A stranger is a connection that we have not admitted yet. At the limit of connections,
 * we find the user with the most strangers, and close this user's youngest stranger. A newcomer
 * counts too, so if its own user has the most, we close the newcomer. A flood therefore displaces
 * only itself.
 *
 * A connection may be closed from within its own callback. We therefore free it only when no
 * callback of ours is on the stack.
 */
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
#include "common/htable.h"
#include "common/log.h"
#include "loop/accept_pause.h"
#include "loop/conn_closer.h"
#include "loop/events.h"
#include "proto/codec.h"
#include "proto/frame.h"

/* We read this much of a connection per iteration. All messages fit, except long Python stacks. */
#define READ_BYTES (16u << 10)
#define MAX_HELLO_BYTES 256u
/* Longest frame that an agent may send without a request. */
#define SHORT_FRAME_BYTES 4096u
/* A request has about 20 bytes. If this many bytes are unsent, the agent has stopped reading. */
#define MAX_UNSENT_BYTES (64u << 10)
/*
 * Newer agents may send some messages that we do not know. After this many we close the connection.
 */
#define MAX_BAD_MESSAGES 64
/*
 * A flood of connections fills the socket's queue, and other clients wait until we have emptied it.
 * So we must accept faster than one client can connect. One accept takes about 10 us, so the limit
 * still leaves time for other events.
 */
#define MAX_ACCEPTS_PER_ITERATION 256

enum conn_state {
	CONN_HELLO,    /* the hello has not arrived completely */
	CONN_CHECKING, /* the owner checks the hello and has not answered yet */
	CONN_ADMITTED,
};

/* One user with connections. */
struct cw_agent_user {
	UT_hash_handle hh;
	uid_t uid;
	uint32_t connections, strangers;
	struct cw_agent_conn *stranger_list; /* strangers of this user, the oldest first */
};

struct cw_agent_conn {
	struct cw_agents *agents;
	int fd;
	struct cw_peer_cred cred;
	enum conn_state state;
	/* is_busy: a callback of ours is on the stack, so we must not free the connection yet. */
	bool is_busy, is_closed;
	unsigned awaited; /* number of requested answers that have not come */
	/* True until the deadline: one of the awaited answers may be a long frame. */
	bool may_be_long;
	size_t skip; /* bytes of a long frame that we still have to read and drop */
	unsigned bad_messages;
	struct event *read_event, *write_event, *deadline_event;
	struct evbuffer *in, *out;
	void *owner, *registration;
	struct cw_agent_conn *prev, *next;
	struct cw_agent_user *user;
	bool is_stranger; /* we have not admitted the agent yet */
	/* Neighbours in the user's stranger_list. */
	struct cw_agent_conn *prev_stranger, *next_stranger;
	/* True if we accepted the connection in this iteration; it then has no events yet. */
	bool is_fresh;
	struct cw_agent_conn *prev_fresh, *next_fresh;
	bool is_silent;    /* the hello has not arrived yet */
	UT_hash_handle hh; /* key: cred.pid; in the table while is_silent */
};

struct cw_agents {
	struct cw_agents_config config;
	struct event *listen_event;
	struct cw_accept_pause *pause;
	struct cw_agent_conn *conns;
	struct cw_agent_user *users; /* users of conns */
	/* key: pid; connections without a hello, at most one per process */
	struct cw_agent_conn *silent;
	struct cw_agent_conn *fresh;
	struct cw_agents_stats stats;
};

/* ---- users and lists ---- */

static struct cw_agent_user *find_user(struct cw_agents *agents, uid_t uid)
{
	struct cw_agent_user *u;

	HASH_FIND(hh, agents->users, &uid, sizeof(uid), u);
	return u;
}

static struct cw_agent_user *find_or_add_user(struct cw_agents *agents, uid_t uid)
{
	struct cw_agent_user *u = find_user(agents, uid);

	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	HASH_ADD(hh, agents->users, uid, sizeof(u->uid), u);
	if (!cw_htable_added(u)) {
		free(u);
		return NULL;
	}
	return u;
}

static void leave_strangers(struct cw_agent_conn *conn)
{
	struct cw_agent_user *u = conn->user;

	if (!conn->is_stranger)
		return;
	conn->is_stranger = false;
	u->strangers--;
	DL_DELETE2(u->stranger_list, conn, prev_stranger, next_stranger);
}

static void leave_fresh(struct cw_agent_conn *conn)
{
	if (conn->is_fresh)
		DL_DELETE2(conn->agents->fresh, conn, prev_fresh, next_fresh);
	conn->is_fresh = false;
}

static void leave_silent(struct cw_agent_conn *conn)
{
	if (conn->is_silent)
		HASH_DEL(conn->agents->silent, conn);
	conn->is_silent = false;
}

static void leave_lists(struct cw_agent_conn *conn)
{
	struct cw_agents *agents = conn->agents;
	struct cw_agent_user *u = conn->user;

	leave_fresh(conn);
	leave_silent(conn);
	leave_strangers(conn);
	DL_DELETE(agents->conns, conn);
	agents->stats.connections--;
	if (--u->connections > 0)
		return;
	HASH_DEL(agents->users, u);
	free(u);
}

/* ---- one connection ---- */

static void conn_free(struct cw_agent_conn *conn)
{
	event_freep(&conn->read_event);
	event_freep(&conn->write_event);
	event_freep(&conn->deadline_event);
	if (conn->in)
		evbuffer_free(conn->in);
	if (conn->out)
		evbuffer_free(conn->out);
	cw_conn_closer_close(conn->agents->config.closer, conn->fd);
	closep(&conn->cred.pidfd);
	free(conn);
}

void cw_agent_conn_close(struct cw_agent_conn *conn)
{
	if (conn->is_closed)
		return;
	conn->is_closed = true;
	leave_lists(conn);
	if (conn->is_busy) {
		/* Fails only for an event that was never set up. */
		(void)event_del(conn->read_event);
		return;
	}
	conn_free(conn);
}

/* Closes the connection and calls on_closed. */
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
			break; /* out of memory: the write event tries again */
		n = send(conn->fd, data, evbuffer_get_length(conn->out),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			break; /* full or closed; if closed, the read event reports the end */
		/* Cannot fail: n is at most the length. */
		(void)evbuffer_drain(conn->out, (size_t)n);
	}
	if (evbuffer_get_length(conn->out) > 0)
		/* If this fails, the next send tries again. */
		(void)event_add(conn->write_event, NULL);
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
	leave_strangers(conn);
	if (event_add(conn->read_event, NULL) == 0 && cw_agent_conn_send(conn, &msg) == 0)
		return;
	/*
	 * Shut the connection down, because an agent without a welcome would wait. The agent then
	 * reconnects, and the read event reports the end of this connection.
	 */
	log_warn("agent pid=%d: cannot answer its hello, it has to connect again",
		 (int)conn->cred.pid);
	(void)shutdown(conn->fd, SHUT_RDWR); /* fails only if the agent has gone */
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
	(void)cw_agent_conn_send(conn, &msg); /* ignore errors: we close the connection anyway */
	cw_agent_conn_close(conn);
}

static uint32_t claimed_bytes(const struct cw_agent_conn *conn)
{
	uint32_t claimed = 0; /* 0 = the header has not arrived completely */

	if (evbuffer_copyout(conn->in, &claimed, sizeof(claimed)) != sizeof(claimed))
		return 0;
	return ntohl(claimed);
}

static void skip_some(struct cw_agent_conn *conn)
{
	size_t len = evbuffer_get_length(conn->in), n = len < conn->skip ? len : conn->skip;

	(void)evbuffer_drain(conn->in, n); /* cannot fail: n is at most the length */
	conn->skip -= n;
}

/*
 * Call this at the deadline for long answers. If part of a long frame has arrived, we drop this
 * part. We drop the rest as it arrives.
 */
static void expect_nothing_long(struct cw_agent_conn *conn)
{
	uint32_t claimed = claimed_bytes(conn);

	conn->may_be_long = false;
	if (conn->skip || claimed <= SHORT_FRAME_BYTES)
		return;
	conn->awaited -= conn->awaited > 0;
	conn->skip = CW_FRAME_HEADER_BYTES + claimed;
	skip_some(conn);
}

static bool is_later(const struct timeval *a, const struct timeval *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_usec > b->tv_usec);
}

void cw_agent_conn_expect_answer(struct cw_agent_conn *conn, uint32_t ms)
{
	struct timeval deadline = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	struct timeval now, until, pending;

	conn->awaited++;
	conn->may_be_long = true;
	(void)evutil_gettimeofday(&now, NULL); /* cannot fail */
	evutil_timeradd(&now, &deadline, &until);
	/* If several requests are open, keep the latest deadline. */
	if (event_pending(conn->deadline_event, EV_TIMEOUT, &pending) && is_later(&pending, &until))
		return;
	if (event_add(conn->deadline_event, &deadline) < 0)
		conn->may_be_long = false; /* out of memory: we accept only a short answer */
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
	/*
	 * Stop the deadline, because it limits only the agent. From here on the agent waits for us.
	 */
	(void)event_del(conn->deadline_event); /* cannot fail: the event exists */
	leave_silent(conn);
	/*
	 * Stop the read event. We only peeked at the hello, so the socket stays readable, and the
	 * loop would spin.
	 */
	(void)event_del(conn->read_event); /* cannot fail: the event exists */
	config->on_hello(conn, hello, frame_len, config->user);
}

/*
 * Looks at the hello, and takes nothing out of the socket. An agent sends its hello at once, as one
 * message of ~30 bytes with a descriptor. The hello therefore arrives whole, or it is malformed.
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

/*
 * Handles the first frame in conn->in. Returns 0 or a negative errno: -EMSGSIZE, -EBADMSG or
 * -ENOMEM. Returns CW_FRAME_NEED_MORE if the frame is incomplete.
 */
static int take_frame(struct cw_agent_conn *conn)
{
	const struct cw_agents_config *config = &conn->agents->config;
	size_t len = evbuffer_get_length(conn->in), used, payload_len;
	struct cw_message *msg = NULL;
	const uint8_t *data, *payload;
	uint32_t claimed;
	int r;

	if (conn->skip) {
		skip_some(conn);
		return conn->skip ? CW_FRAME_NEED_MORE : 0;
	}
	if (len < CW_FRAME_HEADER_BYTES)
		return CW_FRAME_NEED_MORE;
	claimed = claimed_bytes(conn);
	if (claimed == 0 || claimed > CW_FRAME_MAX_BYTES ||
	    (claimed > SHORT_FRAME_BYTES && !conn->awaited))
		return -EMSGSIZE;
	if (claimed > SHORT_FRAME_BYTES && !conn->may_be_long) {
		conn->awaited--;
		conn->skip = CW_FRAME_HEADER_BYTES + claimed;
		return 0;
	}
	if (len < CW_FRAME_HEADER_BYTES + claimed)
		/*
		 * Wait for the whole frame. Otherwise evbuffer_pullup() would copy its beginning
		 * again at each read.
		 */
		return CW_FRAME_NEED_MORE;
	data = evbuffer_pullup(conn->in, (ssize_t)(CW_FRAME_HEADER_BYTES + claimed));
	if (!data)
		return -ENOMEM;
	r = cw_frame_parse(data, CW_FRAME_HEADER_BYTES + claimed, &payload, &payload_len, &used);
	if (r != 0)
		return r;
	r = cw_message_decode(payload, payload_len, &msg);
	(void)evbuffer_drain(conn->in, used); /* cannot fail: used is at most the length */
	if (r < 0)
		return r;
	if (msg->type == CW_MSG_PYTHON_STACKS_REPLY && conn->awaited) {
		if (--conn->awaited == 0)
			conn->may_be_long = false;
		config->on_message(conn, msg, config->user);
	} else { /* no request is open, or the message belongs to a newer version */
		cw_agent_conn_bad_message(conn);
	}
	(void)cw_message_free(msg); /* always NULL */
	return 0;
}

static void conn_read(struct cw_agent_conn *conn)
{
	uint8_t buf[READ_BYTES];
	ssize_t n;
	int r = 0;

	n = cw_unix_recv_bytes(conn->fd, buf, sizeof(buf));
	if (n == -EAGAIN || n == -EINTR)
		return;
	conn->agents->stats.bad_messages += n == -EBADMSG;
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

	if (conn->state == CONN_ADMITTED) {
		expect_nothing_long(conn);
		return;
	}
	conn_enter(conn);
	peek_hello(conn); /* the hello may have come while the timer was late */
	if (!conn->is_closed && conn->state == CONN_HELLO)
		cw_agent_conn_refuse(conn, "no hello before the deadline");
	conn_leave(conn);
}

/* ---- accepting ---- */

/*
 * Makes a connection, still without buffers and events. Most connections of a flood end before they
 * need these. Returns NULL if we have turned the peer away.
 */
static struct cw_agent_conn *conn_new(struct cw_agents *agents, int fd)
{
	const struct cw_agent_user *u;
	struct cw_agent_conn *conn;
	struct cw_peer_cred cred;

	cw_unix_take_oob_inline(fd);
	if (cw_unix_peer_ids(fd, &cred) < 0) {
		cw_conn_closer_close(agents->config.closer, fd);
		return NULL;
	}
	u = find_user(agents, cred.uid);
	conn = u && u->connections >= agents->config.max_conns_per_uid ? NULL
								       : calloc(1, sizeof(*conn));
	if (!conn) {
		cw_conn_closer_close(agents->config.closer, fd);
		return NULL;
	}
	conn->agents = agents;
	conn->fd = fd;
	conn->cred = cred;
	return conn;
}

/* Adds buffers and events. Returns 0 or -ENOMEM; the connection is then unusable. */
static int conn_start(struct cw_agent_conn *conn)
{
	const struct cw_agents_config *config = &conn->agents->config;
	struct timeval deadline = { .tv_sec = config->hello_ms / 1000,
				    .tv_usec = config->hello_ms % 1000 * 1000 };
	struct event_base *base = config->base;
	int fd = conn->fd;

	cw_unix_peer_pidfd(fd, &conn->cred);
	conn->in = evbuffer_new();
	conn->out = evbuffer_new();
	conn->read_event = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, conn);
	conn->write_event = event_new(base, fd, EV_WRITE, on_writable, conn);
	conn->deadline_event = evtimer_new(base, on_deadline, conn);
	if (!conn->in || !conn->out || !conn->read_event || !conn->write_event ||
	    !conn->deadline_event || event_add(conn->read_event, NULL) < 0 ||
	    event_add(conn->deadline_event, &deadline) < 0)
		return -ENOMEM;
	return 0;
}

/* Puts conn into the lists. Returns 0 or -ENOMEM; conn is then in no list. */
static int enter(struct cw_agents *agents, struct cw_agent_conn *conn)
{
	struct cw_agent_user *u = find_or_add_user(agents, conn->cred.uid);
	struct cw_agent_conn *other;

	if (!u)
		return -ENOMEM;
	HASH_FIND(hh, agents->silent, &conn->cred.pid, sizeof(conn->cred.pid), other);
	u->connections++; /* count first: closing the user's last connection would free u */
	if (other)
		cw_agent_conn_defer(other, "its process has opened another connection");
	HASH_ADD(hh, agents->silent, cred.pid, sizeof(conn->cred.pid), conn);
	if (!cw_htable_added(conn)) {
		if (--u->connections == 0) {
			HASH_DEL(agents->users, u);
			free(u);
		}
		return -ENOMEM;
	}
	conn->is_silent = conn->is_stranger = true;
	conn->user = u;
	u->strangers++;
	DL_APPEND2(u->stranger_list, conn, prev_stranger, next_stranger);
	conn->is_fresh = true;
	DL_APPEND2(agents->fresh, conn, prev_fresh, next_fresh);
	DL_APPEND(agents->conns, conn);
	agents->stats.connections++;
	return 0;
}

static void displace_one_for(struct cw_agent_conn *newcomer)
{
	const struct cw_agents_config *config = &newcomer->agents->config;
	const struct cw_agent_user *most = newcomer->user;
	struct cw_agent_conn *youngest;

	for (const struct cw_agent_user *u = newcomer->agents->users; u; u = u->hh.next)
		if (u->strangers > most->strangers)
			most = u;
	youngest = most->stranger_list->prev_stranger; /* in utlist, prev of the head is the tail */
	if (youngest->state != CONN_HELLO)
		config->on_closed(youngest, config->user);
	cw_agent_conn_defer(youngest, "too many connections, and this user has the most");
}

static void take_stranger(struct cw_agents *agents, int fd)
{
	struct cw_agent_conn *conn = conn_new(agents, fd);

	if (conn && enter(agents, conn) < 0) {
		conn_free(conn);
		conn = NULL;
	}
	if (!conn)
		agents->stats.deferred++;
	else if (agents->stats.connections > agents->config.max_conns)
		displace_one_for(conn);
}

static void accept_some(struct cw_agents *agents, int listen_fd)
{
	for (int i = 0; i < MAX_ACCEPTS_PER_ITERATION; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			bool is_last = cw_accept_pause_took(agents->pause, fd);

			take_stranger(agents, fd);
			if (is_last)
				return;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			cw_accept_pause_failed(agents->pause, errno);
		return;
	}
}

static void on_connection(evutil_socket_t listen_fd, short what, void *arg)
{
	struct cw_agents *agents = arg;
	struct cw_agent_conn *conn;

	accept_some(agents, listen_fd);
	while ((conn = agents->fresh)) {
		leave_fresh(conn);
		if (conn_start(conn) < 0)
			cw_agent_conn_defer(conn, "out of memory");
	}
}

static void on_pause(bool on, void *arg)
{
	struct cw_agents *agents = arg;

	if (on ? event_add(agents->listen_event, NULL) < 0 : event_del(agents->listen_event) < 0)
		log_err("agent socket: cannot %s listening: %m", on ? "resume" : "pause");
}

/* ---- life cycle ---- */

int cw_agents_new(const struct cw_agents_config *config, struct cw_agents **ret)
{
	struct cw_agents *agents = calloc(1, sizeof(*agents));

	if (!agents) {
		(void)close(config->listen_fd); /* listen_fd belongs to us, also on failure */
		return -ENOMEM;
	}
	agents->config = *config;
	agents->listen_event = event_new(config->base, config->listen_fd, EV_READ | EV_PERSIST,
					 on_connection, agents);
	if (!agents->listen_event || event_add(agents->listen_event, NULL) < 0 ||
	    cw_accept_pause_new(config->base, config->clock, CW_LISTENER_AGENT, on_pause, agents,
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
	event_freep(&agents->listen_event);
	cw_accept_pause_free(agents->pause);
	closep(&agents->config.listen_fd);
	free(agents);
	return NULL;
}

void cw_agents_stats(const struct cw_agents *agents, struct cw_agents_stats *ret)
{
	*ret = agents->stats;
}
