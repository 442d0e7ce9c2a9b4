/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a peer, from creation to close: the hello that identifies the peer, then beats
 * and frames, finally goodbye. A connection with TLS differs only in how we create its bufferevent
 * and how we explain a failure.
 *
 * Part of tcp.c; loop thread only, nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transport/link.h"
#include "transport/tcp.h"
#include "transport/transport.h"

struct bufferevent;
struct cw_accept_pause;
struct cw_candidate;
struct cw_discovery;
struct cw_resolve;
struct cw_tls;
struct event;
struct evconnlistener;

#define CW_NO_PEER UINT32_MAX

struct cw_conn {
	struct cw_conn *next, *prev;
	struct cw_tcp *tcp;
	struct bufferevent *bev;
	uint32_t peer; /* the peer that we dialed, or that sent the hello; CW_NO_PEER before */
	bool is_dialed, is_up, said_goodbye, is_refused;
	bool is_authentic; /* TLS: the handshake is over, and the other side proved its key */
	uint64_t epoch;    /* of the other side */
	int64_t opened_ns;
	struct sockaddr_storage from;   /* the other side */
	struct cw_candidate *candidate; /* set if discovery.c dialed */
	bool is_identified;             /* the other side has sent its name */
	bool is_replaced;               /* another connection to the same peer replaces this one */
};

/* All connections, their links, and everything that creates both. */
struct cw_tcp {
	struct cw_tcp_config config;
	struct cw_tls *tls; /* NULL = plain, loopback only */
	struct evconnlistener *listener;
	struct cw_accept_pause *pause;
	struct event *timer;
	struct cw_conn *conns;
	struct cw_link *links;
	unsigned n_links;
	int64_t beat_ns;
	struct cw_resolve *resolve;
	int64_t resolve_ns;             /* next round of lookups */
	uint32_t resolve_next;          /* the link that the next round begins with */
	struct cw_discovery *discovery; /* NULL = the configuration lists the peers */
	struct cw_tcp_stats stats;
};

/*
 * Returns whether the other end of fd is on this machine and belongs to root or the daemon's own
 * user. Without authentication, this check keeps other users of the node from posing as a peer.
 */
bool cw_tcp_is_trusted(int fd, const struct sockaddr *other_end);

/* Sends frames to peers through connections. */
extern const struct cw_transport_ops cw_conn_ops;
/* Sends the hello. Returns 0, -ENOBUFS if the output is full, or -ENOMEM. */
int cw_conn_send_hello(struct cw_conn *c);
/* Sends as much as the socket accepts at once. The caller closes the connection next. */
void cw_conn_say_goodbye(struct cw_conn *c);
/* Returns the name of the peer with this index, "node-b". */
const char *cw_conn_peer_name(const struct cw_tcp *tcp, uint32_t peer);
/*
 * Logs a refusal. As the count n grows, we log less often, because strangers may return ten times a
 * second.
 */
void cw_conn_log_refusal(const char *name, uint64_t n, const char *why);

/*
 * Creates a connection. fd is an accepted socket, which we take over, or -1 if we will dial.
 * Returns NULL if out of memory; fd then stays the caller's.
 */
struct cw_conn *cw_conn_new(struct cw_tcp *tcp, int fd, uint32_t peer);
/* Removes the connection from all lists and links, and frees it. */
void cw_conn_close(struct cw_conn *c);
/*
 * Dials an address. peer: the expected peer, or CW_NO_PEER for a candidate's connection. Returns
 * NULL if the caller should try again later.
 */
struct cw_conn *cw_conn_dial(struct cw_tcp *tcp, const struct sockaddr *address, uint32_t peer,
			     struct cw_candidate *candidate);
