/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how often each peer may request work from this node. Even a compromised peer has the key,
 * and it must not be able to block the requests of other peers. Per kind of request, a peer may
 * send a burst and then some requests per second. Both limits are many times the rate at which the
 * leader of a hanging job sends requests.
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
	 * Requests for evidence. A leader sends one request for the culprits. Then it requests all
	 * ranks of a node, 64 at a time.
	 */
	CW_PEER_ASK_EVIDENCE = 0,
	/*
	 * Requests for windows (a rank's recent calls). While a leader suspects a job, it sends one
	 * request per second. It sends one more for the time before.
	 */
	CW_PEER_ASK_WINDOWS,
	/*
	 * Requests to search for ranks that never called NCCL. While ranks are missing in the
	 * creation of a communicator, the leader sends one every 10 s.
	 */
	CW_PEER_ASK_SEARCH,
	/* Mutes. They are rare, because users type them by hand. */
	CW_PEER_ASK_MUTE,
	/* Announcements of incidents: one per incident, repeated every 30 s. */
	CW_PEER_ASK_ANNOUNCE,
	/*
	 * Questions of users about incidents, reports or stacks. A node sends at most
	 * CW_PEER_QUERY_MAX of them at once.
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
 * Returns whether the peer may make this request now. Counts each refusal, and logs at most one per
 * peer and kind in ten minutes.
 */
bool cw_peer_rate_admits(struct cw_peer_rate *r, const char *peer, enum cw_peer_ask kind);

/* Returns the number of refused requests of this kind since the start, over all peers. */
uint64_t cw_peer_rate_refused(const struct cw_peer_rate *r, enum cw_peer_ask kind);
