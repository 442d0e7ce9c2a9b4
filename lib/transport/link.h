/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link to one peer: its addresses, whether this side dials, and the time of the next try.
 * Addresses come from the configuration. A child process looks up host names in rounds.
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

/* Most addresses that we store for one host name; we dial them in turn. */
#define CW_LINK_MAX_ADDRESSES 4u

struct cw_link { /* one per peer */
	struct cw_address address;
	struct sockaddr_storage addresses[CW_LINK_MAX_ADDRESSES];
	unsigned n_addresses, next_address;
	unsigned n_found;     /* addresses found in the current round of lookups */
	struct cw_conn *conn; /* the connection that is up, if any */
	bool is_ours;         /* true if this side dials */
	bool is_found;        /* true if discovery.c has found the peer, and dials it */
	bool is_dialing;
	uint32_t backoff_ms;
	int64_t dial_ns; /* time of the next try */
	uint64_t refused, unresolved;
};

/*
 * Initialises the links of all listed peers. Returns 0, -EINVAL, -EACCES (not loopback, and no key)
 * or -ENOMEM.
 */
int cw_link_init_all(struct cw_tcp *tcp, struct cw_err *err);
/* Returns the next address to try; NULL = none is known yet. */
const struct sockaddr *cw_link_next_address(struct cw_link *link);
/* Call this when a dialed connection has ended. */
void cw_link_back_off(struct cw_tcp *tcp, struct cw_link *link);
/* Starts a round of lookups if one is due. */
void cw_link_look_up_all(struct cw_tcp *tcp, int64_t now_ns);
/* Returns the only peer with that address, on any port; CW_NO_PEER = none, or several. */
uint32_t cw_link_at(const struct cw_tcp *tcp, const struct sockaddr *address);
/*
 * Returns whether both addresses are the same host. An IPv6 host owns a /64, so a /64 counts as one
 * source. Mapped IPv4 is IPv4.
 */
bool cw_link_is_same_source(const struct sockaddr *a, const struct sockaddr *b);
/* Formats "10.0.0.1" into buf, and returns buf. */
const char *cw_link_format(const struct sockaddr *address, char *buf, size_t len);
