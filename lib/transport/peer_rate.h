/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each peer may ask for what costs this node work: one that was taken over has the key,
 * and must not be able to keep the others' questions from being answered. A bucket for each peer
 * and kind: so many at once, and then so many a second, many times what a leader of a hanging job
 * asks.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/address.h"
#include "common/clock.h"

enum cw_peer_ask {
	/* A leader asks once for culprits, then in rounds for all ranks of a node: 64 at a time. */
	CW_PEER_ASK_EVIDENCE = 0,
	/* Each second of a suspicion, for each job of this node, and once more for the past. */
	CW_PEER_ASK_WINDOWS,
	/* Every 10 s while ranks are missing in the making of a communicator. */
	CW_PEER_ASK_SEARCH,
	/* Typed by people, for a job. */
	CW_PEER_ASK_MUTE,
	/* For each incident, and again every 30 s. */
	CW_PEER_ASK_ANNOUNCE,
	/* For people: incidents, reports, stacks. CW_PEER_QUERY_MAX of a node at once. */
	CW_PEER_ASK_QUESTION,
	CW_PEER_ASK__MAX,
};

/* Peers that are told apart; beyond them, and for peers unknown, all share the last. */
#define CW_PEER_RATE_MAX 4096u

struct cw_peer_rate;

/* The clock is borrowed. 0 or -ENOMEM. */
int cw_peer_rate_new(const struct cw_clock *clock, struct cw_peer_rate **ret);
/* Takes NULL; returns NULL. */
struct cw_peer_rate *cw_peer_rate_free(struct cw_peer_rate *r);

/* False, and counted: this peer has asked too often. Said once per peer and kind in ten minutes. */
bool cw_peer_rate_admits(struct cw_peer_rate *r, const char *peer, enum cw_peer_ask kind);

/* Refused so far, of all peers. */
uint64_t cw_peer_rate_refused(const struct cw_peer_rate *r, enum cw_peer_ask kind);
