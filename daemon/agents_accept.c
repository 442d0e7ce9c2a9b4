/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets a connection to the agent socket, and who is turned away before it costs anything. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/agents_private.h"
#include "daemon/uid_count.h"
#include "proto/codec.h"

/*
 * Whoever floods the socket fills its queue, and nobody else gets in until it is emptied: faster
 * than a client can connect, while most of them are refused for less than what connecting costs.
 */
#define MAX_ACCEPTS_PER_TURN 128

/* True: so it was, without a connection having been made of it. */
static bool refuse_at_the_door(struct cw_agents *agents, int fd)
{
	static const struct cw_message msg = {
		.type = CW_MSG_AGENT_REFUSED,
		.agent_refused = { .reason = "too many connections of this user" },
	};
	_cleanup_(freep) uint8_t *bytes = NULL;
	socklen_t cred_len = sizeof(struct ucred);
	struct ucred cred;
	size_t len;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0 ||
	    cw_uid_count_get(agents->per_uid, cred.uid) < agents->config.max_conns_per_uid)
		return false;
	agents->stats.refused++;
	if (cw_message_encode(&msg, &bytes, &len) == 0)
		(void)!send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL); /* it ends anyway */
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

static void welcome_stranger(struct cw_agents *agents, int fd)
{
	const struct cw_agents_config *config = &agents->config;
	struct timeval deadline = { .tv_sec = config->hello_ms / 1000,
				    .tv_usec = config->hello_ms % 1000 * 1000 };
	struct cw_agent_conn *conn;

	if (refuse_at_the_door(agents, fd))
		return;
	conn = conn_new(agents, fd);
	if (conn && cw_uid_count_add(&agents->per_uid, conn->cred.uid) < 0) {
		cw_agent_conn_free(conn);
		conn = NULL;
	}
	if (!conn) {
		agents->stats.refused++;
		return;
	}
	DL_APPEND(agents->conns, conn);
	agents->stats.connections++;
	if (agents->stats.connections > config->max_conns)
		cw_agent_conn_put_off(conn, "too many connections");
	else if (event_add(conn->deadline_event, &deadline) < 0)
		cw_agent_conn_put_off(conn, "out of memory");
}

void cw_agents_on_connection(evutil_socket_t listen_fd, short what, void *arg)
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
			agents->pauses++;
			/* Once a second while it lasts: say it ever more rarely. */
			if ((agents->pauses & (agents->pauses - 1)) == 0)
				log_warn("agent socket: accept: %m, pausing for 1 s (%u so far)",
					 agents->pauses);
			(void)event_del(agents->listen_event);         /* it is set up */
			(void)event_add(agents->resume_event, &pause); /* has memory already */
		}
		return;
	}
}

void cw_agents_on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct cw_agents *agents = arg;

	if (event_add(agents->listen_event, NULL) < 0)
		log_err("agent socket: cannot resume listening: %m");
}
