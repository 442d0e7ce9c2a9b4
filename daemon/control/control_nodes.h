/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control verbs over the whole cluster. If this node has no answer or only part of it, we ask its
 * peers; we also answer their queries. The answer names each node that did not reply.
 *
 *	incidents  all living peers; one list
 *	report     all living peers if this node does not know the id; the first node that has it
 *	mute       this node first, then every node that knows the job: the mute outlives any one of
 *	           them; another node mutes only if it knows that this node has ranks of the job or
 *	           leads it
 *	status     the leaders of this node's jobs, if the client asks for them (`leaders`)
 *	stacks     the job's leader; all living peers if this node does not know the job
 *	communicators  all living peers; one list
 *	summaries  all living peers, to find the job; then one node, for a page of it
 *
 * At most CW_PEER_QUERY_MAX queries are under way, and one per user (any number for a caller that
 * sees all). A further query waits for CW_CONTROL_NODES_PLACE_MS. Then the caller gets this node's
 * answer, with a note that we did not ask the other nodes.
 *
 * The caller is identified by the daemon that asks: it knows the caller from its kernel, and holds
 * the cluster's key or certificate. We limit the number of answers to other nodes; stacks have the
 * usual limit per user.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>

#include "common/clock.h"
#include "daemon/control/control.h"
#include "daemon/control/stacks_request.h"
#include "transport/transport.h"

struct cw_control_nodes;

/* We send this many answers to other nodes per second. Beyond it we tell the nodes to try again. */
#define CW_CONTROL_NODES_PER_S 32u
/*
 * This many of the answers may be pages of tensor summaries. Each takes some 20 ms of the loop, and
 * a user gets half of them.
 */
#define CW_CONTROL_NODES_PAGES_PER_S 8u
/*
 * A query waits this long for its turn, and this long for the answers. The command line waits a bit
 * longer.
 */
#define CW_CONTROL_NODES_PLACE_MS 4000u
#define CW_CONTROL_NODES_WITHIN_MS 5000u
/* The wait for communicators. It is short, because `status` does not wait for a late answer. */
#define CW_CONTROL_NODES_COMMS_MS 1500u
/* The wait for a status. A user watches it and repeats it. */
#define CW_CONTROL_NODES_STATUS_MS 3000u
/* We ask at most this many leaders for one status. */
#define CW_CONTROL_NODES_LEADERS 64u
/* The wait for stacks. It covers the leader's own limit and the round trip. */
#define CW_CONTROL_NODES_STACKS_MS 32000u

struct cw_control_nodes_config {
	const struct cw_clock *clock;
	struct cw_transport *transport; /* NULL = this node has no peers */
	const struct cw_control_source *source;
	struct cw_stacks *stacks;
};

/* Borrows all arguments. 0 or -ENOMEM. */
int cw_control_nodes_new(const struct cw_control_nodes_config *config,
			 struct cw_control_nodes **ret);
/*
 * Open questions end without a call of their fn. Call this before you free the stacks. Takes NULL;
 * returns NULL.
 */
struct cw_control_nodes *cw_control_nodes_free(struct cw_control_nodes *n);

/*
 * Asks other nodes if they have something to add. local is this node's own answer, or NULL for
 * stacks. True: we take local, and fn gets the answer later, exactly once, unless
 * cw_control_nodes_cancel() comes first. We ask no peer before cw_control_nodes_tick(). False:
 * other nodes have nothing to add.
 */
bool cw_control_nodes_ask(struct cw_control_nodes *n, const struct cw_caller *caller,
			  const char *verb, const char *json, struct cw_control_answer *local,
			  cw_stacks_fn fn, void *user);
void cw_control_nodes_cancel(struct cw_control_nodes *n, const void *user);

/* Handles a message of another node. False if it is neither a query nor an answer to one. */
bool cw_control_nodes_message(struct cw_control_nodes *n, const char *from,
			      const struct cw_message *msg);

/* Call it several times a second while it is not idle. */
void cw_control_nodes_tick(struct cw_control_nodes *n);
bool cw_control_nodes_is_idle(const struct cw_control_nodes *n);
