/* SPDX-License-Identifier: Apache-2.0 */
/* Another daemon of the cluster, as this one sees it. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

/* A peer that beats less often than this is silent, whatever its connection looks like. */
#define CW_PEER_SILENT_NS (10 * CW_NS_PER_S)

enum cw_peer_state {
	CW_PEER_NEVER = 0, /* not connected since this daemon started */
	CW_PEER_CONNECTED = 1,
	CW_PEER_LOST = 2,    /* was connected; its end went away without a word */
	CW_PEER_GOODBYE = 3, /* stopped in order: wait for it */
	CW_PEER__MAX,
};

struct cw_peer {
	const char *name;
	const char *address;
	uint32_t state; /* enum cw_peer_state */
	uint64_t epoch;
	int64_t heard_ns; /* last frame, on the awake clock; 0 = never */
	/* Since when it has been heard without a gap of CW_PEER_GAP_NS. */
	int64_t heard_since_ns;
	uint64_t dropped; /* frames not sent: output cap, or not connected */
	/* Why it is not let in, or does not let us in: a few words; NULL = not refused. Static. */
	const char *refused;
};

/* Connected and heard of within CW_PEER_SILENT_NS. */
static inline bool cw_peer_is_alive(const struct cw_peer *p, int64_t awake_ns)
{
	return p->state == CW_PEER_CONNECTED && awake_ns - p->heard_ns < CW_PEER_SILENT_NS;
}
