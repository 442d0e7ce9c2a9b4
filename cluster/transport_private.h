/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by transport_tcp.c (connections come and go), transport_conn.c (what is said on one) and
 * transport_dial.c (where to: addresses, names, when to try again), and transport_found.c (peers
 * that are not listed). With TLS or without differs
 * only in how a bufferevent is made and how its failure is explained.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "cluster/transport_found.h"
#include "cluster/transport_tcp.h"
#include "common/address.h"

struct bufferevent;
struct cw_accept_pause;
struct cw_candidate;
struct cw_resolve;
struct cw_tls;
struct event;
struct evconnlistener;

#define CW_NO_PEER UINT32_MAX
/* Addresses kept of one host name; they are dialed in turn. */
#define CW_LINK_MAX_ADDRESSES 4u

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
	struct cw_candidate *candidate; /* dialed by transport_found.c */
	bool is_identified;             /* it said who it is */
	bool is_replaced;               /* by another one to the same peer */
};

struct cw_link { /* one per peer */
	struct cw_address address;
	struct sockaddr_storage addresses[CW_LINK_MAX_ADDRESSES];
	unsigned n_addresses, next_address;
	unsigned n_found;     /* in the round of look-ups in progress */
	struct cw_conn *conn; /* the one that is up */
	bool is_ours;         /* this side dials */
	bool is_found;        /* by transport_found.c, which dials */
	bool is_dialing;
	uint32_t backoff_ms;
	int64_t dial_ns; /* next try */
	uint64_t refused, unresolved;
};

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
	int64_t resolve_ns;     /* next round of look-ups */
	uint32_t resolve_next;  /* link it begins with */
	struct cw_found *found; /* NULL = peers are listed */
	struct cw_tcp_stats stats;
};

/* ---- transport_conn.c ---- */

extern const struct cw_transport_ops cw_conn_ops;
/* -ENOBUFS: the cap of its output; -ENOMEM. */
int cw_conn_send_hello(struct cw_conn *c);
/* What can be sent at once; the connection is closed next. */
void cw_conn_say_goodbye(struct cw_conn *c);
/* Bufferevent callback; may close the connection. */
void cw_conn_on_read(struct bufferevent *bev, void *user);
/* "node-b", by index. */
const char *cw_conn_peer_name(const struct cw_tcp *tcp, uint32_t peer);
/* Strangers may come back ten times a second: says it ever more rarely, by the count n. */
void cw_conn_log_refusal(const char *name, uint64_t n, const char *why);

/* ---- transport_dial.c ---- */

int cw_dial_init_links(struct cw_tcp *tcp, struct cw_err *err);
/* Next address to try; NULL = none known yet. */
const struct sockaddr *cw_dial_next_address(struct cw_link *link);
/* A dialed connection has ended. */
void cw_dial_back_off(struct cw_tcp *tcp, struct cw_link *link);
/* Starts a round of look-ups where one is due. */
void cw_dial_look_up(struct cw_tcp *tcp, int64_t now_ns);
/* The only peer with that address, whatever the port; CW_NO_PEER = none, or several. */
uint32_t cw_dial_peer_at(const struct cw_tcp *tcp, const struct sockaddr *address);
/* IPv6 hosts own a /64 each: that much counts as one source. Mapped IPv4 is IPv4. */
bool cw_dial_is_same_source(const struct sockaddr *a, const struct sockaddr *b);
/* "10.0.0.1"; returns buf. */
const char *cw_dial_format(const struct sockaddr *address, char *buf, size_t len);

/* ---- transport_tcp.c ---- */

void cw_conn_close(struct cw_conn *c);
/* peer: whom it is hoped to reach, or CW_NO_PEER for a candidate's; NULL = try again later. */
struct cw_conn *cw_conn_dial(struct cw_tcp *tcp, const struct sockaddr *address, uint32_t peer,
			     struct cw_candidate *candidate);
