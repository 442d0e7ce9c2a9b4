/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how often each peer may request work from this node. A compromised peer has the key, but
 * must not be able to block the requests of other peers. Each peer has a bucket per kind of
 * request: a burst, then a rate per second. Both are many times the rate at which the leader of a
 * hanging job sends requests.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/address.h"
#include "common/clock.h"

enum cw_peer_ask {
	/*
	 * Evidence. A leader sends one request for culprits, then rounds for all ranks of a node:
	 * 64 at a time.
	 */
	CW_PEER_ASK_EVIDENCE = 0,
	/*
	 * Windows. While a job is suspected, its leader sends one request per second and one more
	 * for the past.
	 */
	CW_PEER_ASK_WINDOWS,
	/*
	 * Search for ranks: every 10 s while ranks are missing during the creation of a
	 * communicator.
	 */
	CW_PEER_ASK_SEARCH,
	/* Mutes. Users type them by hand. */
	CW_PEER_ASK_MUTE,
	/* Announcements: one per incident, repeated every 30 s. */
	CW_PEER_ASK_ANNOUNCE,
	/*
	 * Questions of users: incidents, reports, stacks. A node sends CW_PEER_QUERY_MAX at once.
	 */
	CW_PEER_ASK_QUESTION,
	CW_PEER_ASK__MAX,
};

/* Number of peers with a bucket of their own. All other peers share one bucket. */
#define CW_PEER_RATE_MAX 4096u

struct cw_peer_rate;

/* Borrows the clock. Returns 0 or -ENOMEM. */
int cw_peer_rate_new(const struct cw_clock *clock, struct cw_peer_rate **ret);
/* Takes NULL; returns NULL. */
struct cw_peer_rate *cw_peer_rate_free(struct cw_peer_rate *r);

/*
 * Returns whether the peer may make this request, and counts a refusal. Logs at most one refusal
 * per peer and kind in ten minutes.
 */
bool cw_peer_rate_admits(struct cw_peer_rate *r, const char *peer, enum cw_peer_ask kind);

/* Returns the number of requests refused so far, of all peers. */
uint64_t cw_peer_rate_refused(const struct cw_peer_rate *r, enum cw_peer_ask kind);
