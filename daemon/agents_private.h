/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by agents.c (what is said on a connection) and agents_accept.c (who gets one). */
#pragma once

#include <event2/util.h>

#include "daemon/agents.h"

struct cw_uid_count;
struct evbuffer;
struct event;

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
	struct cw_uid_count *per_uid; /* of conns */
	unsigned pauses;              /* of accepting: no descriptors, no memory */
	struct cw_agents_stats stats;
};

/* ---- agents.c ---- */

/* Takes a half-built one; it is in no list. */
void cw_agent_conn_free(struct cw_agent_conn *conn);
/* Event callbacks; arg is the connection. */
void cw_agent_conn_on_readable(evutil_socket_t fd, short what, void *arg);
void cw_agent_conn_on_writable(evutil_socket_t fd, short what, void *arg);
void cw_agent_conn_on_deadline(evutil_socket_t fd, short what, void *arg);

/* ---- agents_accept.c ---- */

/* Event callbacks; arg is the struct cw_agents. */
void cw_agents_on_connection(evutil_socket_t listen_fd, short what, void *arg);
void cw_agents_on_resume(evutil_socket_t fd, short what, void *arg);
