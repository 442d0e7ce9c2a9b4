/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent socket: connections, framing, limits. This file knows the shape of the conversation: a
 * hello with a descriptor, an answer, then messages both ways. It does not know what a record or a
 * process is.
 *
 * Every process on the machine may connect, so we limit each connection. There are limits on the
 * number in all, per uid and, before admission, per process. There are limits on the time until the
 * hello, on the bytes per frame, on unsent bytes, and on messages that make no sense. We read once
 * per iteration of the loop, so a flood on one connection does not delay the others. A peer that
 * breaks a limit loses its connection; the others do not notice.
 *
 * If the daemon lacks time or room, it defers the agent: it closes the connection without an
 * answer, and the agent comes back within two seconds. A refusal is an answer, for reasons that do
 * not pass by themselves. The agent's deadline never includes the time that its hello waits for
 * the daemon.
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
	const struct cw_clock *clock;  /* borrowed for life */
	struct cw_conn_closer *closer; /* borrowed for life */
	int listen_fd;                 /* taken */
	const char *daemon;            /* name sent in the welcome; borrowed for life */
	uint32_t max_conns, max_conns_per_uid;
	uint32_t hello_ms; /* time for the hello to arrive; the daemon's check does not count */

	/*
	 * A hello arrived. We only peeked at it: its bytes, frame_len in all, and its descriptor
	 * are still in the socket. A child receives them, because that may hang
	 * (daemon/agents/agent_probe.h). The callee answers now or later with
	 * cw_agent_conn_admit(), cw_agent_conn_refuse() or cw_agent_conn_defer().
	 */
	void (*on_hello)(struct cw_agent_conn *conn, const struct cw_msg_agent_hello *hello,
			 size_t frame_len, void *user);
	/* An admitted agent sent the Python stacks that we requested. msg is borrowed. */
	void (*on_message)(struct cw_agent_conn *conn, const struct cw_message *msg, void *user);
	/*
	 * Called before the connection closes by itself, but not for cw_agent_conn_refuse() or
	 * cw_agent_conn_close().
	 */
	void (*on_closed)(struct cw_agent_conn *conn, void *user);
	void *user;
};

/* Takes listen_fd in either case. 0 or -ENOMEM. */
int cw_agents_new(const struct cw_agents_config *config, struct cw_agents **ret);
/* Takes NULL; returns NULL. Closes all connections without on_closed. */
struct cw_agents *cw_agents_free(struct cw_agents *agents);

struct cw_agents_stats {
	uint64_t refused, deferred, bad_messages;
	uint32_t connections;
};
void cw_agents_stats(const struct cw_agents *agents, struct cw_agents_stats *ret);

int cw_agent_conn_fd(const struct cw_agent_conn *conn);
/* Returns the peer's identity from the kernel. The caller may take the pidfd and set it to -1. */
struct cw_peer_cred *cw_agent_conn_cred(struct cw_agent_conn *conn);
void cw_agent_conn_set_owner(struct cw_agent_conn *conn, void *owner);
void *cw_agent_conn_owner(const struct cw_agent_conn *conn);
/* Sets the registration that handles the hello of this connection. */
void cw_agent_conn_set_registration(struct cw_agent_conn *conn, void *registration);
void *cw_agent_conn_registration(const struct cw_agent_conn *conn);
/*
 * True if the peer has closed the connection. Use it for connections with a queued hello, because
 * we do not read from those.
 */
bool cw_agent_conn_is_gone(const struct cw_agent_conn *conn);

/* Sends the welcome. From now on we deliver the agent's messages. */
void cw_agent_conn_admit(struct cw_agent_conn *conn);
/*
 * Sends the reason, counts the refusal, and closes the connection. Agents of version 0.1 then stay
 * away for a minute. Later versions wait longer after each refusal, up to a minute.
 */
void cw_agent_conn_refuse(struct cw_agent_conn *conn, const char *reason);
/*
 * Use it for reasons that lie with the daemon and will pass, such as no memory or no place. Counts,
 * and closes without an answer, so that the agent tries again within two seconds.
 */
void cw_agent_conn_defer(struct cw_agent_conn *conn, const char *reason);
void cw_agent_conn_close(struct cw_agent_conn *conn);

/* Returns 0, -EAGAIN if the peer does not read its messages, or another -errno. */
int cw_agent_conn_send(struct cw_agent_conn *conn, const struct cw_message *msg);

/*
 * Call it after a request for Python stacks. One more answer may come, and for `ms` milliseconds it
 * may be a frame of up to CW_FRAME_MAX_BYTES. All other messages of an agent take a few dozen bytes
 * at most, and a thousand connections must not hold a thousand MiB. So we read and drop a long
 * frame that comes too late. An answer without a request is a bad message.
 */
void cw_agent_conn_expect_answer(struct cw_agent_conn *conn, uint32_t ms);

/* Counts a message that makes no sense here. Too many of them close the connection. */
void cw_agent_conn_bad_message(struct cw_agent_conn *conn);
