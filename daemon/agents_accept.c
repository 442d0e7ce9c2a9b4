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
#include "daemon/accept_pause.h"
#include "daemon/agents_private.h"

/*
 * Whoever floods the socket fills its queue, and nobody else gets in until it is emptied: faster
 * than a client can connect. About 10 us each, so that other things get their turn, too.
 */
#define MAX_ACCEPTS_PER_TURN 1024

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

/* True: so it was, without a connection having been made of it. */
static bool defer_at_the_door(struct cw_agents *agents, int fd)
{
	socklen_t cred_len = sizeof(struct ucred);
	const struct cw_agent_user *u;
	struct ucred cred;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0)
		return false;
	u = find_user(agents, cred.uid);
	if (!u || u->connections < agents->config.max_conns_per_uid)
		return false;
	agents->stats.deferred++;
	closep(&fd);
	return true;
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
		cw_agent_conn_free(conn);
		return NULL;
	}
	conn->in = evbuffer_new();
	conn->out = evbuffer_new();
	conn->read_event =
		event_new(base, fd, EV_READ | EV_PERSIST, cw_agent_conn_on_readable, conn);
	conn->write_event = event_new(base, fd, EV_WRITE, cw_agent_conn_on_writable, conn);
	conn->deadline_event = evtimer_new(base, cw_agent_conn_on_deadline, conn);
	if (!conn->in || !conn->out || !conn->read_event || !conn->write_event ||
	    !conn->deadline_event || event_add(conn->read_event, NULL) < 0) {
		cw_agent_conn_free(conn);
		return NULL;
	}
	return conn;
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

static void welcome_stranger(struct cw_agents *agents, int fd)
{
	const struct cw_agents_config *config = &agents->config;
	struct timeval deadline = { .tv_sec = config->hello_ms / 1000,
				    .tv_usec = config->hello_ms % 1000 * 1000 };
	struct cw_agent_conn *conn;

	if (defer_at_the_door(agents, fd))
		return;
	conn = conn_new(agents, fd);
	if (conn && enter(agents, conn) < 0) {
		cw_agent_conn_free(conn);
		conn = NULL;
	}
	if (!conn)
		agents->stats.deferred++;
	else if (event_add(conn->deadline_event, &deadline) < 0)
		cw_agent_conn_defer(conn, "out of memory");
	else if (agents->stats.connections > config->max_conns)
		displace_one_for(conn);
}

void cw_agents_on_connection(evutil_socket_t listen_fd, short what, void *arg)
{
	struct cw_agents *agents = arg;
	for (int i = 0; i < MAX_ACCEPTS_PER_TURN; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			bool is_last = cw_accept_pause_took(agents->pause, fd);

			welcome_stranger(agents, fd);
			if (is_last)
				return;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			cw_accept_pause_failed(agents->pause, errno);
		return;
	}
}

void cw_agents_switch(bool on, void *arg)
{
	struct cw_agents *agents = arg;

	if (on ? event_add(agents->listen_event, NULL) < 0 : event_del(agents->listen_event) < 0)
		log_err("agent socket: cannot %s listening: %m", on ? "resume" : "pause");
}
