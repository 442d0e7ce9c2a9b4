/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a peer, from its making to its end: the hello that says who is there, beats,
 * frames, goodbye. With TLS or without differs only in how its bufferevent is made and how its
 * failure is explained.
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
	uint32_t peer; /* whom it was dialed to, or who said hello; CW_NO_PEER before */
	bool is_dialed, is_up, said_goodbye, is_refused;
	bool is_authentic; /* TLS: the handshake is over, and the other side has the key */
	uint64_t epoch;    /* of the other side */
	int64_t opened_ns;
	struct sockaddr_storage from;   /* the other side */
	struct cw_candidate *candidate; /* dialed by discovery.c */
	bool is_identified;             /* it said who it is */
	bool is_replaced;               /* by another one to the same peer */
};

/* All connections, the links they belong to, and what makes both. */
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
	int64_t resolve_ns;             /* next round of look-ups */
	uint32_t resolve_next;          /* link it begins with */
	struct cw_discovery *discovery; /* NULL = peers are listed */
	struct cw_tcp_stats stats;
};

/*
 * Whether the other end of fd is on this machine and opened, or accepted, by root or the daemon's
 * own user: where peers do not authenticate, other users of the node must not be able to pose as
 * one.
 */
bool cw_tcp_is_trusted(int fd, const struct sockaddr *other_end);

/* What can be sent to peers through connections. */
extern const struct cw_transport_ops cw_conn_ops;
/* -ENOBUFS: the cap of its output; -ENOMEM. */
int cw_conn_send_hello(struct cw_conn *c);
/* What can be sent at once; the connection is closed next. */
void cw_conn_say_goodbye(struct cw_conn *c);
/* "node-b", by index. */
const char *cw_conn_peer_name(const struct cw_tcp *tcp, uint32_t peer);
/* Strangers may come back ten times a second: says it ever more rarely, by the count n. */
void cw_conn_log_refusal(const char *name, uint64_t n, const char *why);

/* fd: accepted, taken; -1 = one that will be dialed. NULL = out of memory, and fd is not taken. */
struct cw_conn *cw_conn_new(struct cw_tcp *tcp, int fd, uint32_t peer);
/* Takes it out of everything that knows it, and frees it. */
void cw_conn_close(struct cw_conn *c);
/* peer: whom it is hoped to reach, or CW_NO_PEER for a candidate's; NULL = try again later. */
struct cw_conn *cw_conn_dial(struct cw_tcp *tcp, const struct sockaddr *address, uint32_t peer,
			     struct cw_candidate *candidate);
