/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link to one peer: the peer's addresses, whether this side dials, and the time of the next
 * dial. Addresses come from the configuration. If it has host names, a child process looks up all
 * of them together; we call this a round.
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

/* Maximum number of addresses per host name. We dial them one after the other. */
#define CW_LINK_MAX_ADDRESSES 4u

struct cw_link { /* What we know about reaching one peer. */
	struct cw_address address;
	struct sockaddr_storage addresses[CW_LINK_MAX_ADDRESSES];
	unsigned n_addresses, next_address;
	unsigned n_found;     /* number of addresses that the current round of lookups has found */
	struct cw_conn *conn; /* the established connection; NULL = none */
	bool is_ours;         /* true if this side dials, false if the peer does */
	bool is_found;        /* true if discovery.c found this peer; discovery.c then also dials */
	bool is_dialing;
	uint32_t backoff_ms;
	int64_t dial_ns; /* time of the next dial */
	uint64_t refused, unresolved;
};

/*
 * Initialises the links of all listed peers. Returns 0, -EINVAL, -ENOMEM, or -EACCES if an address
 * is not loopback and there is no key.
 */
int cw_link_init_all(struct cw_tcp *tcp, struct cw_err *err);
/* Returns the address to dial next; NULL = no address is known yet. */
const struct sockaddr *cw_link_next_address(struct cw_link *link);
/* Call this when a connection that we dialed has ended. Delays the next dial. */
void cw_link_back_off(struct cw_tcp *tcp, struct cw_link *link);
/* Starts a round of lookups if its time has come. */
void cw_link_look_up_all(struct cw_tcp *tcp, int64_t now_ns);
/*
 * Returns the index of the only peer with this address; the port does not matter. CW_NO_PEER: no
 * peer or several peers have this address.
 */
uint32_t cw_link_at(const struct cw_tcp *tcp, const struct sockaddr *address);
/*
 * Returns whether both addresses belong to the same host. Two IPv6 addresses of one /64 count as
 * one host, because a host usually owns a /64. A mapped IPv4 address counts as IPv4.
 */
bool cw_link_is_same_source(const struct sockaddr *a, const struct sockaddr *b);
/* Formats the address without its port, such as "10.0.0.1", into buf. Returns buf. */
const char *cw_link_format(const struct sockaddr *address, char *buf, size_t len);
