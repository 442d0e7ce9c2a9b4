/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent socket: connections, framing, limits. Knows the shape of the conversation (hello with a
 * descriptor, answer, then messages both ways) and nothing of what a record or a process is.
 *
 * Anybody on the machine may connect, so every connection is bounded: number in all, per uid and,
 * of those that are not admitted, per process; time until its hello comes, bytes per frame, bytes
 * waiting to be written, messages that make no sense. One read per turn of the loop, so that a
 * flood on one connection leaves the others their turn. Whoever breaks a limit loses its
 * connection; nobody else notices.
 *
 * What the daemon has no time or place for is deferred: the connection ends without a word, and an
 * agent comes back within two seconds. A refusal is an answer, for what will not pass by itself.
 * The time a hello waits for the daemon is never the agent's fault.
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
	const char *daemon;            /* for the welcome; borrowed for life */
	uint32_t max_conns, max_conns_per_uid;
	uint32_t hello_ms; /* for the hello to come; not for the daemon to look at it */

	/*
	 * A hello came. It was only peeked at: its bytes, frame_len in all, and the descriptor
	 * that travels with them still wait in the socket, to be taken out by somebody who may
	 * hang (daemon/agents/agent_probe.h). Answer with cw_agent_conn_admit() or one of the other
	 * two, now or later.
	 */
	void (*on_hello)(struct cw_agent_conn *conn, const struct cw_msg_agent_hello *hello,
			 size_t frame_len, void *user);
	/* Python stacks that an admitted agent was asked for; msg is borrowed. */
	void (*on_message)(struct cw_agent_conn *conn, const struct cw_message *msg, void *user);
	/* The connection is going away by itself (not after _refuse() or _close()). */
	void (*on_closed)(struct cw_agent_conn *conn, void *user);
	void *user;
};

/* 0 or -ENOMEM; listen_fd is taken in either case. */
int cw_agents_new(const struct cw_agents_config *config, struct cw_agents **ret);
/* Takes NULL; returns NULL. Closes all connections without on_closed. */
struct cw_agents *cw_agents_free(struct cw_agents *agents);

struct cw_agents_stats {
	uint64_t refused, deferred, bad_messages;
	uint32_t connections;
};
void cw_agents_stats(const struct cw_agents *agents, struct cw_agents_stats *ret);

int cw_agent_conn_fd(const struct cw_agent_conn *conn);
/* Kernel's word on the peer. The callee may take the pidfd out (set it to -1). */
struct cw_peer_cred *cw_agent_conn_cred(struct cw_agent_conn *conn);
void cw_agent_conn_set_owner(struct cw_agent_conn *conn, void *owner);
void *cw_agent_conn_owner(const struct cw_agent_conn *conn);
/* The same for who looks at its hello. */
void cw_agent_conn_set_registration(struct cw_agent_conn *conn, void *registration);
void *cw_agent_conn_registration(const struct cw_agent_conn *conn);
/* The other side has closed it. For connections whose hello waits: nothing is read from them. */
bool cw_agent_conn_is_gone(const struct cw_agent_conn *conn);

/* Sends the welcome; from now on messages are delivered. */
void cw_agent_conn_admit(struct cw_agent_conn *conn);
/*
 * Tells the reason, counts, closes. Agents of version 0.1 do not come back for a minute after that,
 * later ones for ever longer, up to a minute.
 */
void cw_agent_conn_refuse(struct cw_agent_conn *conn, const char *reason);
/*
 * For reasons that lie with the daemon and will pass (no memory, no place just now): counts and
 * closes without a word, so that the agent tries again within two seconds.
 */
void cw_agent_conn_defer(struct cw_agent_conn *conn, const char *reason);
void cw_agent_conn_close(struct cw_agent_conn *conn);

/* 0, -EAGAIN when the peer does not read what it was sent, or another -errno. */
int cw_agent_conn_send(struct cw_agent_conn *conn, const struct cw_message *msg);

/*
 * The peer was asked for Python stacks: one more answer may come, and for so long it may be a frame
 * of up to CW_FRAME_MAX_BYTES. Nothing else that an agent says is longer than a few dozen bytes,
 * and a thousand connections must not be able to hold a thousand MiB: what is long and comes too
 * late is read and dropped. An answer beyond those asked for is a bad message.
 */
void cw_agent_conn_expect_answer(struct cw_agent_conn *conn, uint32_t ms);

/* Counts a message that made no sense here; too many close the connection. */
void cw_agent_conn_bad_message(struct cw_agent_conn *conn);
