/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the leaders' requests to this node: windows of its ranks' records, and evidence about a
 * rank. A node gets nothing about the ranks of a job that it does not lead, as far as this node
 * knows.
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
 * The limit of open evidence requests, of targets of each, and of a request's deadline. Beyond it
 * we refuse requests. The last eighth is for peers below the quota (identity/quota.h).
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

/* Borrows all arguments. 0 or -ENOMEM. */
int cw_responder_new(const struct cw_responder_config *config, struct cw_responder **ret);
/* The caller must stop the captures first (cw_capture_free()). Takes NULL; returns NULL. */
struct cw_responder *cw_responder_free(struct cw_responder *r);
/* True if the message was a request. */
bool cw_responder_message(struct cw_responder *r, const char *from, const struct cw_message *msg);
/*
 * Returns the number of requests refused so far, plus the number of omitted evidence targets.
 */
uint64_t cw_responder_refused(const struct cw_responder *r);
