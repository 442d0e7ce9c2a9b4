/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent socket: connections, framing, limits. This file knows the order of the messages. First
 * comes a hello with a descriptor, then an answer, then messages both ways. This file does not know
 * what a record or a process is.
 *
 * Every process on the machine may connect, so we limit connections: in all, per uid and, before
 * admission, per process. We also limit the time until the hello, the bytes per frame, the unsent
 * bytes, and the number of invalid messages. We read each connection once per iteration of the
 * loop, so a flood on one connection does not delay the others. If a peer breaks a limit, only this
 * peer loses its connection.
 *
 * If the daemon lacks time or room, it defers the agent. To defer means to close the connection
 * without an answer; the agent then reconnects within two seconds. A refusal is an answer with a
 * reason. We refuse an agent if its problem does not pass by itself. The agent's deadline does not
 * include the time that its hello waits in the daemon.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/unixsock.h"
#include "proto/messages.h"

struct cw_clock;
struct cw_conn_closer;
struct event_base;
struct cw_agents;
struct cw_agent_conn;

struct cw_agents_config {
	struct event_base *base;
	const struct cw_clock *clock;  /* borrowed until cw_agents_free() */
	struct cw_conn_closer *closer; /* borrowed until cw_agents_free() */
	int listen_fd;                 /* owned from now on, also on failure */
	/* Name sent in the welcome; borrowed until cw_agents_free(). */
	const char *daemon;
	uint32_t max_conns, max_conns_per_uid;
	/* Time until the hello must arrive; the daemon's own check has no such limit. */
	uint32_t hello_ms;

	/*
	 * Called when a hello has arrived. We have only peeked at it: its frame_len bytes and its
	 * descriptor are still in the socket. A child must receive the descriptor, because this may
	 * hang (daemon/agents/agent_probe.h). The callee answers, now or later, with
	 * cw_agent_conn_admit(), cw_agent_conn_refuse() or cw_agent_conn_defer().
	 */
	void (*on_hello)(struct cw_agent_conn *conn, const struct cw_msg_agent_hello *hello,
			 size_t frame_len, void *user);
	/*
	 * Called when an admitted agent has sent the Python stacks that we requested. msg is
	 * borrowed.
	 */
	void (*on_message)(struct cw_agent_conn *conn, const struct cw_message *msg, void *user);
	/*
	 * Called before the connection closes for another reason than cw_agent_conn_refuse() or
	 * cw_agent_conn_close().
	 */
	void (*on_closed)(struct cw_agent_conn *conn, void *user);
	void *user;
};

/* Owns listen_fd from now on, also on failure. Returns 0 or -ENOMEM. */
int cw_agents_new(const struct cw_agents_config *config, struct cw_agents **ret);
/* Takes NULL; returns NULL. Closes all connections without on_closed. */
struct cw_agents *cw_agents_free(struct cw_agents *agents);

struct cw_agents_stats {
	uint64_t refused, deferred, bad_messages;
	uint32_t connections;
};
void cw_agents_stats(const struct cw_agents *agents, struct cw_agents_stats *ret);

int cw_agent_conn_fd(const struct cw_agent_conn *conn);
/*
 * Returns the peer's identity, as the kernel reports it. The caller may take over the pidfd; it
 * then sets the field to -1.
 */
struct cw_peer_cred *cw_agent_conn_cred(struct cw_agent_conn *conn);
void cw_agent_conn_set_owner(struct cw_agent_conn *conn, void *owner);
void *cw_agent_conn_owner(const struct cw_agent_conn *conn);
/* Stores the registration that handles this connection's hello. */
void cw_agent_conn_set_registration(struct cw_agent_conn *conn, void *registration);
void *cw_agent_conn_registration(const struct cw_agent_conn *conn);
/*
 * True if the peer has closed the connection. Call this for a connection with a queued hello. We do
 * not read such a connection, so we do not notice its end otherwise.
 */
bool cw_agent_conn_is_gone(const struct cw_agent_conn *conn);

/* Sends the welcome. From now on we deliver the agent's messages to on_message. */
void cw_agent_conn_admit(struct cw_agent_conn *conn);
/*
 * Sends the reason, counts the refusal, and closes the connection. An agent of version 0.1 then
 * reconnects after a minute. Later versions wait longer after each refusal, up to a minute.
 */
void cw_agent_conn_refuse(struct cw_agent_conn *conn, const char *reason);
/*
 * Closes the connection without an answer, and counts this. Use this function if the reason will
 * pass, for example if memory is short or the table of processes is full. The agent then reconnects
 * within two seconds.
 */
void cw_agent_conn_defer(struct cw_agent_conn *conn, const char *reason);
void cw_agent_conn_close(struct cw_agent_conn *conn);

/* Returns 0 or -errno. -EAGAIN: the peer does not read its messages. */
int cw_agent_conn_send(struct cw_agent_conn *conn, const struct cw_message *msg);

/*
 * Call this after sending a request for Python stacks. It allows one more answer. For `ms`
 * milliseconds, the answer may be a frame of up to CW_FRAME_MAX_BYTES. All other messages of an
 * agent have at most a few dozen bytes. We allow no longer ones, because otherwise a thousand
 * connections could make us hold a thousand MiB. If a long frame comes after the deadline, we read
 * and drop it. An answer without a request is a bad message.
 */
void cw_agent_conn_expect_answer(struct cw_agent_conn *conn, uint32_t ms);

/* Counts an invalid message of this peer. Closes the connection if there are too many. */
void cw_agent_conn_bad_message(struct cw_agent_conn *conn);
