/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a question (NodeRequest) to one, several or all living peers, and passes on their answers
 * as they arrive. We ask at most CW_PEER_QUERY_IN_FLIGHT peers at the same time. The question ends
 * when all peers have answered, when the caller needs no more answers, or at the deadline. A peer
 * that leaves or is too slow counts as a peer without an answer.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "transport/transport.h"

struct cw_peer_query;

/*
 * Maximum number of requests of one question in flight. It is far below CW_TRANSPORT_MAX_REQUESTS,
 * so that requests for evidence and windows are not refused.
 */
#define CW_PEER_QUERY_IN_FLIGHT 32u
/* Maximum number of questions at the same time. */
#define CW_PEER_QUERY_MAX 8u

/*
 * Receives one node's answer; NULL = the node did not answer. Returns true if the caller needs no
 * further answers.
 */
typedef bool (*cw_peer_query_fn)(const char *node, const struct cw_msg_node_reply *answer,
				 void *user);
/*
 * Called when the question has ended and no answer will follow. The owner then frees the question.
 * Never called from inside cw_peer_query_new().
 */
typedef void (*cw_peer_query_done_fn)(void *user);

struct cw_peer_query_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const char *node;         /* the only node to ask; NULL = use `nodes` */
	const char *const *nodes; /* names of n_nodes nodes to ask; NULL = ask all living peers */
	unsigned n_nodes;
	const char *verb, *json;
	uint32_t uid;
	bool sees_all;
	uint32_t within_ms;
	cw_peer_query_fn on_answer;
	cw_peer_query_done_fn on_done;
	void *user;
};

/*
 * Copies the configuration. Sends nothing before the first cw_peer_query_tick(). Returns 0 or
 * -ENOMEM.
 */
int cw_peer_query_new(const struct cw_peer_query_config *config, struct cw_peer_query **ret);
/* Takes NULL; returns NULL. Calls no callback afterwards. */
struct cw_peer_query *cw_peer_query_free(struct cw_peer_query *a);
/* Sends requests and checks the deadline. Call this several times a second. It may call on_done. */
void cw_peer_query_tick(struct cw_peer_query *a);
