/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets a connection to the agent socket, and who is turned away before it costs anything.
 *
 * A process needs one connection: where it makes another before its hello has come, the older one
 * ends. When all places are taken, a newcomer gets that of the youngest stranger of whoever has
 * most strangers, unless that is the newcomer itself: a flood displaces the flood.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/agents/agents_private.h"
#include "daemon/system/accept_pause.h"

/*
 * Whoever floods the socket fills its queue, and nobody else gets in until it is emptied: faster
 * than a client can connect. About 10 us each, so that other things get their turn, too.
 */
#define MAX_ACCEPTS_PER_TURN 256

/* ---- users ---- */

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

void cw_agents_heard(struct cw_agent_conn *conn)
{
	if (conn->is_silent)
		HASH_DEL(conn->agents->silent, conn);
	conn->is_silent = false;
}

void cw_agents_admitted(struct cw_agent_conn *conn)
{
	leave_strangers(conn);
}

void cw_agents_forget(struct cw_agent_conn *conn)
{
	struct cw_agents *agents = conn->agents;
	struct cw_agent_user *u = conn->user;

	leave_fresh(conn);
	cw_agents_heard(conn);
	leave_strangers(conn);
	DL_DELETE(agents->conns, conn);
	agents->stats.connections--;
	if (--u->connections > 0)
		return;
	HASH_DEL(agents->users, u);
	free(u);
}

/* ---- at the door ---- */

/* Without what it takes to talk: most of a flood ends before that. NULL: it was turned away. */
static struct cw_agent_conn *conn_new(struct cw_agents *agents, int fd)
{
	const struct cw_agent_user *u;
	struct cw_agent_conn *conn;
	struct cw_peer_cred cred;

	if (cw_unix_peer_ids(fd, &cred) < 0) {
		closep(&fd);
		return NULL;
	}
	u = find_user(agents, cred.uid);
	conn = u && u->connections >= agents->config.max_conns_per_uid ? NULL
								       : calloc(1, sizeof(*conn));
	if (!conn) {
		closep(&fd);
		return NULL;
	}
	conn->agents = agents;
	conn->fd = fd;
	conn->cred = cred;
	return conn;
}

/* -ENOMEM: it cannot be talked to. */
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
	conn->read_event =
		event_new(base, fd, EV_READ | EV_PERSIST, cw_agent_conn_on_readable, conn);
	conn->write_event = event_new(base, fd, EV_WRITE, cw_agent_conn_on_writable, conn);
	conn->deadline_event = evtimer_new(base, cw_agent_conn_on_deadline, conn);
	if (!conn->in || !conn->out || !conn->read_event || !conn->write_event ||
	    !conn->deadline_event || event_add(conn->read_event, NULL) < 0 ||
	    event_add(conn->deadline_event, &deadline) < 0)
		return -ENOMEM;
	return 0;
}

/* -ENOMEM: it is in no list. */
static int enter(struct cw_agents *agents, struct cw_agent_conn *conn)
{
	struct cw_agent_user *u = find_or_add_user(agents, conn->cred.uid);
	struct cw_agent_conn *other;

	if (!u)
		return -ENOMEM;
	HASH_FIND(hh, agents->silent, &conn->cred.pid, sizeof(conn->cred.pid), other);
	u->connections++; /* first: the last one takes its user with it */
	if (other)
		cw_agent_conn_defer(other, "its process has made another connection");
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
	youngest = most->stranger_list->prev_stranger; /* utlist: the head's is the tail */
	if (youngest->state != CONN_HELLO)
		config->on_closed(youngest, config->user);
	cw_agent_conn_defer(youngest, "too many connections, most of them this user's");
}

static void take_stranger(struct cw_agents *agents, int fd)
{
	struct cw_agent_conn *conn = conn_new(agents, fd);

	if (conn && enter(agents, conn) < 0) {
		cw_agent_conn_free(conn);
		conn = NULL;
	}
	if (!conn)
		agents->stats.deferred++;
	else if (agents->stats.connections > agents->config.max_conns)
		displace_one_for(conn);
}

static void accept_some(struct cw_agents *agents, int listen_fd)
{
	for (int i = 0; i < MAX_ACCEPTS_PER_TURN; i++) {
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

void cw_agents_on_connection(evutil_socket_t listen_fd, short what, void *arg)
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

void cw_agents_switch(bool on, void *arg)
{
	struct cw_agents *agents = arg;

	if (on ? event_add(agents->listen_event, NULL) < 0 : event_del(agents->listen_event) < 0)
		log_err("agent socket: cannot %s listening: %m", on ? "resume" : "pause");
}
