/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link to one peer: where it is, whether this side dials, when to try again. Addresses come
 * from the configuration; host names are looked up by a child, round after round.
 *
 * Part of tcp.c; loop thread only, nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/err.h"

struct cw_conn;
struct cw_tcp;

/* Addresses kept of one host name; they are dialed in turn. */
#define CW_LINK_MAX_ADDRESSES 4u

struct cw_link { /* one per peer */
	struct cw_address address;
	struct sockaddr_storage addresses[CW_LINK_MAX_ADDRESSES];
	unsigned n_addresses, next_address;
	unsigned n_found;     /* in the round of look-ups in progress */
	struct cw_conn *conn; /* the one that is up */
	bool is_ours;         /* this side dials */
	bool is_found;        /* by discovery.c, which dials */
	bool is_dialing;
	uint32_t backoff_ms;
	int64_t dial_ns; /* next try */
	uint64_t refused, unresolved;
};

/* Of all peers that are listed. 0, -EINVAL, -EACCES (not loopback, and no key), -ENOMEM. */
int cw_link_init_all(struct cw_tcp *tcp, struct cw_err *err);
/* Next address to try; NULL = none known yet. */
const struct sockaddr *cw_link_next_address(struct cw_link *link);
/* A dialed connection has ended. */
void cw_link_back_off(struct cw_tcp *tcp, struct cw_link *link);
/* Starts a round of look-ups where one is due. */
void cw_link_look_up_all(struct cw_tcp *tcp, int64_t now_ns);
/* The only peer with that address, whatever the port; CW_NO_PEER = none, or several. */
uint32_t cw_link_at(const struct cw_tcp *tcp, const struct sockaddr *address);
/* IPv6 hosts own a /64 each: that much counts as one source. Mapped IPv4 is IPv4. */
bool cw_link_is_same_source(const struct sockaddr *a, const struct sockaddr *b);
/* "10.0.0.1"; returns buf. */
const char *cw_link_format(const struct sockaddr *address, char *buf, size_t len);
