/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control verbs over the whole cluster. If this node has no answer, or only a part of it, we ask
 * its peers. We also answer the queries of other nodes. The answer names each node that did not
 * reply. This table has the nodes that we ask:
 *
 * incidents  all living peers; we join their lists
 * report     all living peers if this node does not know the id; the first report wins
 * mute       this node first. Then every node that knows the job, so that the mute outlives any one
 *            of these nodes. Another node obeys only if it knows that this node runs ranks of the
 *            job or leads it.
 * status     the leaders of this node's jobs, if the client asks for them (`leaders`)
 * stacks     the job's leader; all living peers if this node does not know the job
 * communicators  all living peers; we join their lists
 * summaries  all living peers, to find the job; then one node, for one page
 *
 * At most CW_PEER_QUERY_MAX queries are under way, and one per user. (A caller that sees all jobs
 * may have any number.) A further query waits up to CW_CONTROL_NODES_PLACE_MS. After that the
 * caller gets this node's answer, with a note that we did not ask the other nodes.
 *
 * Another node trusts us to name the caller. We know the caller from the kernel, and we hold the
 * cluster's key or certificate. We limit the number of answers to other nodes. Stacks also have
 * their usual limit per user.
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

/*
 * Maximum number of answers to other nodes per second. Beyond this limit we reply that the node
 * should try again.
 */
#define CW_CONTROL_NODES_PER_S 32u
/*
 * Maximum number of pages of tensor summaries among these answers. A page takes some 20 ms of the
 * loop. One user gets at most half of the pages.
 */
#define CW_CONTROL_NODES_PAGES_PER_S 8u
/*
 * How long a query waits until we may start it, and how long we then wait for the answers. The
 * command line waits a bit longer than both.
 */
#define CW_CONTROL_NODES_PLACE_MS 4000u
#define CW_CONTROL_NODES_WITHIN_MS 5000u
/*
 * How long we wait for documents of communicators. The wait is short, because the command `status`
 * needs them and must not be slow.
 */
#define CW_CONTROL_NODES_COMMS_MS 1500u
/* How long we wait for a status. It is short, because a user watches it and can repeat it. */
#define CW_CONTROL_NODES_STATUS_MS 3000u
/* Maximum number of leaders that we ask for one status. */
#define CW_CONTROL_NODES_LEADERS 64u
/* How long we wait for stacks. It covers the leader's own time limit and the way there and back. */
#define CW_CONTROL_NODES_STACKS_MS 32000u

struct cw_control_nodes_config {
	const struct cw_clock *clock;
	struct cw_transport *transport; /* NULL = this node has no peers */
	const struct cw_control_source *source;
	struct cw_stacks *stacks;
};

/* Borrows all pointers of config. Returns 0 or -ENOMEM. */
int cw_control_nodes_new(const struct cw_control_nodes_config *config,
			 struct cw_control_nodes **ret);
/*
 * Ends open questions without calling their fn. Call this before cw_stacks_request_free(). Takes
 * NULL; returns NULL.
 */
struct cw_control_nodes *cw_control_nodes_free(struct cw_control_nodes *n);

/*
 * Asks other nodes if they may have something to add. local: this node's own answer; NULL for
 * stacks. Returns true: we take local, and call fn exactly once later, unless
 * cw_control_nodes_cancel() comes first. We ask no peer before cw_control_nodes_tick(). Returns
 * false: the other nodes have nothing to add, and local is the answer.
 */
bool cw_control_nodes_ask(struct cw_control_nodes *n, const struct cw_caller *caller,
			  const char *verb, const char *json, struct cw_control_answer *local,
			  cw_stacks_fn fn, void *user);
void cw_control_nodes_cancel(struct cw_control_nodes *n, const void *user);

/*
 * Handles a message of another node. Returns false if the message is neither a query nor an answer
 * to one.
 */
bool cw_control_nodes_message(struct cw_control_nodes *n, const char *from,
			      const struct cw_message *msg);

/*
 * Starts waiting questions and ends late ones. Call this several times a second while
 * cw_control_nodes_is_idle() is false.
 */
void cw_control_nodes_tick(struct cw_control_nodes *n);
bool cw_control_nodes_is_idle(const struct cw_control_nodes *n);
