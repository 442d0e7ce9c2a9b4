/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by agents.c (what is said on a connection) and agents_accept.c (who gets one). */
#pragma once

#include <event2/util.h>

#include "common/htable.h"
#include "daemon/agents/agents.h"

struct cw_accept_pause;
struct evbuffer;
struct event;

enum conn_state {
	CONN_HELLO,    /* nothing complete yet */
	CONN_CHECKING, /* hello handed up, no answer yet */
	CONN_ADMITTED,
};

/* Somebody with connections. */
struct cw_agent_user {
	UT_hash_handle hh;
	uid_t uid;
	uint32_t connections, strangers;
	struct cw_agent_conn *stranger_list; /* oldest first */
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
	void *owner, *registration;
	struct cw_agent_conn *prev, *next;
	struct cw_agent_user *user;
	bool is_stranger;                                    /* not admitted yet */
	struct cw_agent_conn *prev_stranger, *next_stranger; /* of the user's */
	bool is_fresh;                                       /* of this turn: nothing waits on it */
	struct cw_agent_conn *prev_fresh, *next_fresh;
	bool is_silent;    /* its hello has not come */
	UT_hash_handle hh; /* by cred.pid, while it is silent */
};

struct cw_agents {
	struct cw_agents_config config;
	struct event *listen_event;
	struct cw_accept_pause *pause;
	struct cw_agent_conn *conns;
	struct cw_agent_user *users;  /* of conns */
	struct cw_agent_conn *silent; /* by process: one of each */
	struct cw_agent_conn *fresh;
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

/* Its hello has come: the process may make another connection. */
void cw_agents_heard(struct cw_agent_conn *conn);
/* It is admitted: it counts against no limit of strangers. */
void cw_agents_admitted(struct cw_agent_conn *conn);
/* Out of all lists; it is closed next. */
void cw_agents_forget(struct cw_agent_conn *conn);

/* Callbacks of the listening socket; arg is the struct cw_agents. */
void cw_agents_on_connection(evutil_socket_t listen_fd, short what, void *arg);
void cw_agents_switch(bool on, void *arg);
