/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question to other nodes (NodeRequest) and their answers as they arrive. It goes to one, to
 * several or to all living peers, some at a time. It ends when the caller has enough, all
 * peers have answered, or the time is up. A node that leaves or is too slow counts as having
 * given no answer.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "transport/transport.h"

struct cw_peer_query;

/* Requests of one question in flight; evidence and windows need room beside them. */
#define CW_PEER_QUERY_IN_FLIGHT 32u
/* Most questions at once. */
#define CW_PEER_QUERY_MAX 8u

/* answer NULL: the node did not answer. Returns true if the caller needs no further answer. */
typedef bool (*cw_peer_query_fn)(const char *node, const struct cw_msg_node_reply *answer,
				 void *user);
/*
 * No answer will follow; the owner then frees the question. We never call this from
 * inside cw_peer_query_new().
 */
typedef void (*cw_peer_query_done_fn)(void *user);

struct cw_peer_query_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const char *node;         /* NULL = use nodes */
	const char *const *nodes; /* n_nodes of them, may be 0; NULL = all living peers */
	unsigned n_nodes;
	const char *verb, *json;
	uint32_t uid;
	bool sees_all;
	uint32_t within_ms;
	cw_peer_query_fn on_answer;
	cw_peer_query_done_fn on_done;
	void *user;
};

/* Copies the configuration and sends nothing before cw_peer_query_tick(). 0 or -ENOMEM. */
int cw_peer_query_new(const struct cw_peer_query_config *config, struct cw_peer_query **ret);
/* Takes NULL; returns NULL. No callback follows. */
struct cw_peer_query *cw_peer_query_free(struct cw_peer_query *a);
/* Call it several times a second. May call on_done. */
void cw_peer_query_tick(struct cw_peer_query *a);
