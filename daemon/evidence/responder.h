/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers requests of leaders to this node: for windows (recent calls) of its ranks, and for
 * evidence about a rank. We answer a node only about jobs that it leads, as far as this node knows.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>

#include "daemon/evidence/capture.h"
#include "daemon/node/node.h"
#include "leader/election.h"
#include "transport/transport.h"

struct cw_responder;

/*
 * Limits of evidence requests: open requests, targets per request, and the deadline of a request.
 * We refuse requests beyond the first limit. Only peers below their quota may use its last eighth
 * (identity/quota.h).
 */
#define CW_RESPONDER_MAX_PENDING 64u
#define CW_RESPONDER_MAX_TARGETS 64u
#define CW_RESPONDER_MAX_DEADLINE_MS 30000u

struct cw_responder_config {
	struct cw_transport *transport;
	struct cw_election *members;
	struct cw_node *node;
	struct cw_capture *capture;
	const char *node_name;
};

/* Borrows all pointers of config. Returns 0 or -ENOMEM. */
int cw_responder_new(const struct cw_responder_config *config, struct cw_responder **ret);
/* Call cw_capture_free() first, so that no capture calls back. Takes NULL; returns NULL. */
struct cw_responder *cw_responder_free(struct cw_responder *r);
/*
 * Handles a message of another node. Returns false if it is not a request for windows or evidence.
 */
bool cw_responder_message(struct cw_responder *r, const char *from, const struct cw_message *msg);
/*
 * Returns the number of refused requests since the start, plus the number of omitted evidence
 * targets.
 */
uint64_t cw_responder_refused(const struct cw_responder *r);
