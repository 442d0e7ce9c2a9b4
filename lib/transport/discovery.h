/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds peers under one host name instead of in a list. Each address of the name is a daemon, which
 * says its own name in its hello. The host name only says where to look; the key or the certificate
 * decides on admission. A false answer for the name can make this daemon dial in vain, and can do
 * nothing else:
 *
 * - A lookup that fails, or gets no answer, changes nothing.
 * - We add addresses as they appear, up to a limit. We forget an address after ten minutes of good
 *   answers without it. We then forget its peer, too, if the peer was not connected in all that
 *   time. An answer without the address does not make us forget that a peer is lost.
 * - We dial few addresses at once, and an address without a daemon ever more rarely.
 *
 * Both sides may dial each other before they know each other's name. Of two connections between the
 * same two daemons, both sides keep the connection that was dialed by the name that sorts first.
 *
 * Part of tcp.c; loop thread only, nothing blocks: a child does the lookup.
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

/* Interval of lookups: the usual time to live of a service's DNS record. */
#define CW_DISCOVERY_LOOK_UP_NS (30 * CW_NS_PER_S)
#define CW_DISCOVERY_FORGET_NS (600 * CW_NS_PER_S)
/* Most addresses of the name that we store. */
#define CW_DISCOVERY_MAX_ADDRESSES 4096u
/* Most dials at once. Connected addresses do not count. */
#define CW_DISCOVERY_MAX_DIALS 64u
/* If an address has no known peer, we dial it ever more rarely, up to this interval. */
#define CW_DISCOVERY_BACKOFF_MAX_MS 10000u

/* name: "host:port". Returns 0, -EINVAL, -EACCES (no key) or -ENOMEM, with err set. */
int cw_discovery_new(struct cw_tcp *tcp, const char *name, struct cw_discovery **ret,
		     struct cw_err *err);
/* Call this when all connections are closed. Takes NULL; returns NULL. */
struct cw_discovery *cw_discovery_free(struct cw_discovery *discovery);

/* Starts lookups, dials addresses and forgets peers, as far as they are due. */
void cw_discovery_tick(struct cw_discovery *discovery, int64_t now_ns);

/*
 * Adds an unknown peer after a permitted hello. Returns its index, or CW_NO_PEER if there is
 * no room.
 */
uint32_t cw_discovery_add_peer(struct cw_discovery *discovery, const struct cw_conn *c,
			       const char *name);
/*
 * Call this when a connection begins. Like the functions below, it ignores connections that do not
 * belong to a candidate.
 */
void cw_discovery_dialed(struct cw_conn *c);
/*
 * Call this when the other end of the connection is known to be the peer. CW_NO_PEER: it is this
 * daemon itself.
 */
void cw_discovery_identified(struct cw_conn *c, uint32_t peer);
/* Returns whether we keep this connection if there are two to the same peer. */
bool cw_discovery_is_preferred(const struct cw_conn *c, const char *name);
/* Stores the reason of a refusal, a text with static lifetime. */
void cw_discovery_refused(struct cw_conn *c, const char *why);
/* Call this when the connection is about to close. */
void cw_discovery_closed(struct cw_conn *c);

/* Writes a note for people about problems; "" = there is no problem. Returns buf. */
const char *cw_discovery_note(const struct cw_discovery *discovery, char *buf, size_t len);
