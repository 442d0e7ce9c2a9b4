/* SPDX-License-Identifier: Apache-2.0 */
/* Another daemon of the cluster, as this one sees it. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

/* A peer is silent if it has sent no frame for this long, even if its connection looks healthy. */
#define CW_PEER_SILENT_NS (10 * CW_NS_PER_S)

enum cw_peer_state {
	CW_PEER_NEVER = 0, /* not connected since this daemon started */
	CW_PEER_CONNECTED = 1,
	CW_PEER_LOST = 2,    /* was connected; the connection ended without a goodbye message */
	CW_PEER_GOODBYE = 3, /* the peer said goodbye, for example to restart: we wait for it */
	CW_PEER__MAX,
};

/* Why this daemon refuses the peer, or the peer refuses this daemon. */
enum cw_peer_refusal {
	CW_PEER_NOT_REFUSED = 0,
	CW_PEER_KEY_DIFFERS = 1, /* the peer's cluster key differs from ours */
	CW_PEER_NO_KEY = 2, /* the peer speaks without TLS, so it has neither key nor certificate */
	CW_PEER_CERTIFICATE = 3, /* one side does not accept the certificate of the other */
	CW_PEER_TLS = 4,         /* the handshake failed in another way */
	CW_PEER_REFUSAL__MAX,
};

/*
 * Return the name of a refusal in documents ("key_differs" …) and its words for people ("key
 * differs" …). NULL for CW_PEER_NOT_REFUSED and for unknown numbers.
 */
const char *cw_peer_refusal_name(unsigned refusal);
const char *cw_peer_refusal_words(unsigned refusal);
/* Returns the number of a name; -1 for an unknown name, for example of a newer daemon. */
int cw_peer_refusal_from_name(const char *name);

struct cw_peer {
	const char *name;
	const char *address;
	uint32_t state; /* enum cw_peer_state */
	uint64_t epoch;
	int64_t last_seen_ns; /* time of the last frame, on the awake clock; 0 = no frame yet */
	/* Since this time, no two frames were CW_PEER_GAP_NS or more apart. */
	int64_t seen_since_ns;
	/* Number of frames that we did not send: output limit reached, or not connected. */
	uint64_t dropped;
	uint32_t refusal; /* enum cw_peer_refusal */
};

/* True if the peer is connected and its last frame is less than CW_PEER_SILENT_NS old. */
static inline bool cw_peer_is_alive(const struct cw_peer *p, int64_t awake_ns)
{
	return p->state == CW_PEER_CONNECTED && awake_ns - p->last_seen_ns < CW_PEER_SILENT_NS;
}
