/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds peers under one host name, when the configuration has no list of peers. Each address of the
 * name belongs to one daemon, and the daemon's hello states its node name. The host name says only
 * where to look. The key or the certificate decides whether a daemon is a peer. A false answer of
 * the resolver can therefore make this daemon dial in vain, but no more:
 *
 * - A failed or empty lookup changes nothing.
 * - We add new addresses, up to a limit. We forget an address after ten minutes of successful
 *   answers without it. We forget its peer too, if the peer was never connected in these ten
 *   minutes. An answer without the address of a lost peer does not make us forget that the peer is
 *   lost.
 * - We dial few addresses at once. If no daemon answers at an address, we dial it less and less
 *   often.
 *
 * Two daemons may dial each other before they know each other's name, which gives two connections.
 * Both daemons keep the connection that was dialed by the name that sorts first.
 *
 * Part of tcp.c; loop thread only. Nothing blocks, because a child process does the lookup.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/err.h"

struct cw_conn;
struct cw_discovery;
struct cw_tcp;

/* Interval of lookups. It is the usual time to live of a service's DNS record. */
#define CW_DISCOVERY_LOOK_UP_NS (30 * CW_NS_PER_S)
#define CW_DISCOVERY_FORGET_NS (600 * CW_NS_PER_S)
/* Maximum number of addresses of the name that we store. */
#define CW_DISCOVERY_MAX_ADDRESSES 4096u
/* Maximum number of dials at the same time. Connected addresses do not count as dials. */
#define CW_DISCOVERY_MAX_DIALS 64u
/*
 * Longest time between two dials of an address that has no known peer. The time grows with each
 * failure.
 */
#define CW_DISCOVERY_BACKOFF_MAX_MS 10000u

/* name: "host:port". Returns 0, -EINVAL, -EACCES (no key configured) or -ENOMEM, with err set. */
int cw_discovery_new(struct cw_tcp *tcp, const char *name, struct cw_discovery **ret,
		     struct cw_err *err);
/* Call this after closing all connections. Takes NULL; returns NULL. */
struct cw_discovery *cw_discovery_free(struct cw_discovery *discovery);

/*
 * Call this several times a second. Starts the lookups and dials whose time has come, and forgets
 * old peers.
 */
void cw_discovery_tick(struct cw_discovery *discovery, int64_t now_ns);

/*
 * Adds a peer that was unknown before its hello. The caller has accepted the hello. Returns the
 * peer's index, or CW_NO_PEER if there are too many peers.
 */
uint32_t cw_discovery_add_peer(struct cw_discovery *discovery, const struct cw_conn *c,
			       const char *name);
/*
 * Call this when we have dialed a candidate. This function and the functions below do nothing for a
 * connection that does not belong to a candidate.
 */
void cw_discovery_dialed(struct cw_conn *c);
/*
 * Call this when the hello has told us the peer at the other end. peer: CW_NO_PEER = the other end
 * is this daemon itself.
 */
void cw_discovery_identified(struct cw_conn *c, uint32_t peer);
/* Returns whether to keep this connection if there are two connections to the peer `name`. */
bool cw_discovery_is_preferred(const struct cw_conn *c, const char *name);
/* Stores the reason for refusing the other side. why: a static text. */
void cw_discovery_refused(struct cw_conn *c, const char *why);
/* Call this when the connection is about to close. */
void cw_discovery_closed(struct cw_conn *c);

/* Writes a note for users about problems of discovery. "" = there are none. Returns buf. */
const char *cw_discovery_note(const struct cw_discovery *discovery, char *buf, size_t len);
