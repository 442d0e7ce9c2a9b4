/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers what leaders ask of this node: windows of its ranks' records, evidence about a rank. Who
 * does not lead a job, as far as this node knows, gets nothing of its ranks.
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
 * Evidence requests being answered; each holds some targets. More are refused; the last eighth is
 * for peers below a fair share (identity/shares.h).
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

/* All borrowed. 0 or -ENOMEM. */
int cw_responder_new(const struct cw_responder_config *config, struct cw_responder **ret);
/* Takes NULL; returns NULL. The captures must be stopped before (cw_capture_free()). */
struct cw_responder *cw_responder_free(struct cw_responder *r);
/* True when the message was a request. */
bool cw_responder_message(struct cw_responder *r, const char *from, const struct cw_message *msg);
/* Requests that named no job, as peers of the version before send them, so far; refused. */
uint64_t cw_responder_unnamed(const struct cw_responder *r);
/* Requests refused for other reasons, and targets of evidence left out, so far. */
uint64_t cw_responder_refused(const struct cw_responder *r);
