/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question put to other nodes (NodeRequest), and their answers as they come: to one, to some,
 * or to all living peers, some at a time, until the asker has enough, all have answered, or the
 * time is up. A node that goes away or is too slow has given no answer.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "transport/transport.h"

struct cw_peer_query;

/* Of one question at once: beside those, evidence and windows have to find room on the way. */
#define CW_PEER_QUERY_IN_FLIGHT 32u
/* Questions at once. */
#define CW_PEER_QUERY_MAX 8u

/* answer NULL: none came. Returns true when no further answer is wanted. */
typedef bool (*cw_peer_query_fn)(const char *node, const struct cw_msg_node_reply *answer,
				 void *user);
/* No answer comes any more; the question may be freed, and is by its owner. Never from inside
 * cw_peer_query_new(). */
typedef void (*cw_peer_query_done_fn)(void *user);

struct cw_peer_query_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const char *node;         /* NULL = those of nodes */
	const char *const *nodes; /* n_nodes of them, also none; NULL = all living peers */
	unsigned n_nodes;
	const char *verb, *json;
	uint32_t uid;
	bool sees_all;
	uint32_t within_ms;
	cw_peer_query_fn on_answer;
	cw_peer_query_done_fn on_done;
	void *user;
};

/* Copies what it needs; nothing is sent before cw_peer_query_tick(). 0 or -ENOMEM. */
int cw_peer_query_new(const struct cw_peer_query_config *config, struct cw_peer_query **ret);
/* Takes NULL; returns NULL. Nobody is called back any more. */
struct cw_peer_query *cw_peer_query_free(struct cw_peer_query *a);
/* Call it several times a second. May call on_done. */
void cw_peer_query_tick(struct cw_peer_query *a);
