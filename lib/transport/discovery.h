/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that are found under one host name, instead of being listed: each of its addresses is a
 * daemon, and tells its name when it is met. The name only says where to look. Who is let in is
 * decided by key or certificate, so whoever lies about the name can make this daemon dial in vain,
 * and nothing else:
 *
 * - An answer that fails, or does not come, changes nothing.
 * - Addresses are added as they appear, up to a limit, and forgotten when they have been missing
 *   from good answers for ten minutes; a peer then, too, if it has not been connected all that
 *   time. Its loss is not forgotten by an answer that leaves it out.
 * - Few addresses are dialed at once, and those where nobody answers ever more rarely.
 *
 * Both sides may dial each other before they know who they are. Of two connections between the
 * same two daemons the one stays that was dialed by the name that sorts first, on both sides.
 *
 * Part of tcp.c; loop thread only, nothing blocks: a child does the look-up.
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

/* Like the usual time to live of a record of a service. */
#define CW_DISCOVERY_LOOK_UP_NS (30 * CW_NS_PER_S)
#define CW_DISCOVERY_FORGET_NS (600 * CW_NS_PER_S)
/* Addresses of the name that are kept. */
#define CW_DISCOVERY_MAX_ADDRESSES 4096u
/* Dialed at once, of those that are not connected yet. */
#define CW_DISCOVERY_MAX_DIALS 64u
/* Where nobody is known to be, it is tried ever more rarely. */
#define CW_DISCOVERY_BACKOFF_MAX_MS 10000u

/* name: "host:port". 0, -EINVAL, -EACCES (no key), -ENOMEM, with err set. */
int cw_discovery_new(struct cw_tcp *tcp, const char *name, struct cw_discovery **ret,
		     struct cw_err *err);
/* When no connection is left. Takes NULL; returns NULL. */
struct cw_discovery *cw_discovery_free(struct cw_discovery *f);

/* Looks up, dials and forgets, as far as it is time. */
void cw_discovery_tick(struct cw_discovery *f, int64_t now_ns);

/* Somebody unknown said hello, and may: its index, or CW_NO_PEER when there is no room. */
uint32_t cw_discovery_add_peer(struct cw_discovery *f, const struct cw_conn *c, const char *name);
/* A connection that this file asked for begins; others are ignored here and below. */
void cw_discovery_dialed(struct cw_conn *c);
/* The connection's other end is the peer; CW_NO_PEER: this daemon itself. */
void cw_discovery_identified(struct cw_conn *c, uint32_t peer);
/* Of two connections to this peer, this is the one to keep. */
bool cw_discovery_is_preferred(const struct cw_conn *c, const char *name);
/* Why it was refused: a static text. */
void cw_discovery_refused(struct cw_conn *c, const char *why);
/* It is being closed. */
void cw_discovery_closed(struct cw_conn *c);

/* What people should know; "" = all is well. Returns buf. */
const char *cw_discovery_note(const struct cw_discovery *f, char *buf, size_t len);
