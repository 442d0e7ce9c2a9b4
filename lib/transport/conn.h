/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a peer, from its creation to its close. First comes the hello, which identifies
 * the peer. Then come frames and beats (repeated hellos), and finally a goodbye. A connection with
 * TLS differs in two things: the creation of its bufferevent and the explanation of a failure.
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
struct cw_children;
struct cw_resolve;
struct cw_tls;
struct event;
struct evconnlistener;

#define CW_NO_PEER UINT32_MAX

struct cw_conn {
	struct cw_conn *next, *prev;
	struct cw_tcp *tcp;
	struct bufferevent *bev;
	/* Index of the peer that we dialed or that sent the hello; CW_NO_PEER = not known yet. */
	uint32_t peer;
	bool is_dialed, is_up, said_goodbye, is_refused;
	bool is_authentic; /* TLS only: the handshake is over, and the other side proved its key */
	uint64_t epoch;    /* start of the other side's daemon, wall ns; 0 = in the future */
	int64_t opened_ns;
	struct sockaddr_storage from; /* address of the other side */
	/* The candidate that we dialed; NULL = discovery.c did not dial. */
	struct cw_candidate *candidate;
	bool is_identified; /* the other side has sent its name */
	bool is_replaced;   /* a new connection to the same peer replaces this one */
};

/* The TCP backend: all connections, the links to all peers, and the sources of new connections. */
struct cw_tcp {
	struct cw_tcp_config config;
	struct cw_tls *tls; /* NULL = no TLS; then we use loopback only */
	struct evconnlistener *listener;
	struct cw_accept_pause *pause;
	struct event *timer;
	struct cw_conn *conns;
	struct cw_link *links;
	unsigned n_links;
	int64_t beat_ns;
	struct cw_children *children; /* children that look up host names */
	struct cw_resolve *resolve;
	int64_t resolve_ns;             /* time of the next round of host name lookups */
	uint32_t resolve_next;          /* index of the first link of that round */
	struct cw_discovery *discovery; /* NULL = the configuration lists the peers */
	struct cw_tcp_stats stats;
};

/*
 * Returns whether the other end of fd is on this machine and belongs to root or to the daemon's own
 * user. Without a key, only this check stops other users of the node from posing as a peer.
 */
bool cw_tcp_is_trusted(int fd, const struct sockaddr *other_end);

/* Sends frames to peers through connections. */
extern const struct cw_transport_ops cw_conn_ops;
/* Sends the hello. Returns 0, -ENOBUFS if the output is full, or -ENOMEM. */
int cw_conn_send_hello(struct cw_conn *c);
/*
 * Sends a goodbye, as far as the socket accepts it at once. The caller must close the connection
 * afterwards.
 */
void cw_conn_say_goodbye(struct cw_conn *c);
/* Returns the name of the peer with this index, such as "node-b". */
const char *cw_conn_peer_name(const struct cw_tcp *tcp, uint32_t peer);
/*
 * Logs a refused hello. n is the number of refusals so far. We log fewer of them as n grows,
 * because an unknown host may return ten times a second.
 */
void cw_conn_log_refusal(const char *name, uint64_t n, const char *why);

/*
 * Creates a connection. fd: an accepted socket, which we then own; -1 = the caller dials next.
 * Returns NULL if out of memory; the caller then still owns fd.
 */
struct cw_conn *cw_conn_new(struct cw_tcp *tcp, int fd, uint32_t peer);
/* Closes the connection, removes it from all lists and links, and frees it. */
void cw_conn_close(struct cw_conn *c);
/*
 * Dials an address. peer: the expected peer; CW_NO_PEER = we dial a candidate (discovery.c) and
 * expect no particular peer. Returns NULL if the caller should try again later.
 */
struct cw_conn *cw_conn_dial(struct cw_tcp *tcp, const struct sockaddr *address, uint32_t peer,
			     struct cw_candidate *candidate);
