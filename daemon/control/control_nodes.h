/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control verbs over the whole cluster: what this node cannot answer by itself, or only in part, is
 * asked of its peers, and theirs is answered here. A node that does not answer is named.
 *
 *	incidents  all living peers; one list
 *	report     where the id is not known here: all living peers, the first that has it
 *	mute       done here first, then wherever the job is known: it outlives any one of its
 *	           nodes; others mute only where this node is known to have ranks of the job or
 *	           to lead it
 *	status     the leaders of this node's jobs, where the client wants them (`leaders`)
 *	stacks     the job's leader; where nobody here knows the job, all living peers
 *	communicators  all living peers; one list
 *	summaries  all living peers, who has the job; then one node, for a page of it
 *
 * At most CW_PEER_QUERY_MAX questions are under way, one of a user (of who sees all, any number of
 * them). Others wait for CW_CONTROL_NODES_PLACE_MS; then the answer is this node's, and says that
 * the others were not asked.
 *
 * Who asks is said by the asker's daemon, which knows it from its kernel and has the cluster's key
 * or certificate. Answers to others are limited in number; stacks by user, as everybody's.
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

/* Answers for other nodes, in a second; beyond it they are told to come again. */
#define CW_CONTROL_NODES_PER_S 32u
/* … of which pages of tensor summaries, each some 20 ms of the loop; of one user half of them. */
#define CW_CONTROL_NODES_PAGES_PER_S 8u
/* How long a question waits for a place, and then for the others' answers; the command line waits a
 * little longer. */
#define CW_CONTROL_NODES_PLACE_MS 4000u
#define CW_CONTROL_NODES_WITHIN_MS 5000u
/* Of communicators: `status` does not wait for a late answer. */
#define CW_CONTROL_NODES_COMMS_MS 1500u
/* Of a status: people wait for it, and ask again. */
#define CW_CONTROL_NODES_STATUS_MS 3000u
/* Leaders that one status asks. */
#define CW_CONTROL_NODES_LEADERS 64u
/* Of stacks: the leader's own time and the way. */
#define CW_CONTROL_NODES_STACKS_MS 32000u

struct cw_control_nodes_config {
	const struct cw_clock *clock;
	struct cw_transport *transport; /* NULL = this node is all there is */
	const struct cw_control_source *source;
	struct cw_stacks *stacks;
};

/* All borrowed. 0 or -ENOMEM. */
int cw_control_nodes_new(const struct cw_control_nodes_config *config,
			 struct cw_control_nodes **ret);
/* Before the stacks. Takes NULL; returns NULL. Nobody is called back any more. */
struct cw_control_nodes *cw_control_nodes_free(struct cw_control_nodes *n);

/*
 * local: this node's own answer, taken when this returns true; NULL for stacks. True: the answer
 * comes later through fn, exactly once, or not at all after cw_control_nodes_cancel(): nobody is
 * asked before cw_control_nodes_tick(). False: other nodes have nothing to add.
 */
bool cw_control_nodes_ask(struct cw_control_nodes *n, const struct cw_caller *caller,
			  const char *verb, const char *json, struct cw_control_answer *local,
			  cw_stacks_fn fn, void *user);
void cw_control_nodes_cancel(struct cw_control_nodes *n, const void *user);

/* False: none of its messages. */
bool cw_control_nodes_message(struct cw_control_nodes *n, const char *from,
			      const struct cw_message *msg);

/* Call it several times a second while it is not idle. */
void cw_control_nodes_tick(struct cw_control_nodes *n);
bool cw_control_nodes_is_idle(const struct cw_control_nodes *n);
