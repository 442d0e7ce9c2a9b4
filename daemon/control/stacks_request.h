/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collwatch stacks`: takes the stacks of a job, or of one rank, on a user's request. If this node
 * leads the job we ask all its nodes; otherwise we take the ranks of this node. We take Python
 * stacks only while a hang is confirmed: walking a running interpreter is not safe
 * (docs/design/evidence.md#on-demand).
 *
 * Users see their own jobs. Each gets one answer at a time, and one per CW_STACKS_EVERY_NS.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <jansson.h>

#include "common/clock.h"
#include "daemon/control/control.h"
#include "daemon/control/status_doc.h"

struct cw_stacks;

#define CW_STACKS_EVERY_NS (2 * CW_NS_PER_S)
/* Requests of all users that may run at a time. */
#define CW_STACKS_MAX_RUNNING 4u
/* Users whose last request we remember. */
#define CW_STACKS_MAX_USERS 64u
/* At this deadline we answer with the stacks that we have; the command line waits a bit longer. */
#define CW_STACKS_WITHIN_NS (30 * CW_NS_PER_S)

struct cw_stacks_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const struct cw_leader_effects *effects; /* sends the queries of the stack collection */
	struct cw_leader *leader;
	struct cw_election *members;
	struct cw_node *node;
};

/* All borrowed. 0 or -ENOMEM. */
int cw_stacks_request_new(const struct cw_stacks_config *config, struct cw_stacks **ret);
/* Takes NULL; returns NULL. Calls no fn any more. */
struct cw_stacks *cw_stacks_request_free(struct cw_stacks *s);

/* The number of requests beyond a limit so far. */
uint64_t cw_stacks_request_refused(const struct cw_stacks *s);

/* Takes the content of the answer. */
typedef void (*cw_stacks_fn)(struct cw_control_answer *answer, void *user);

/*
 * arguments: {"job": label or the part of it after the colon, "rank": number}; both are optional.
 * fn is called exactly once, never from inside this call, and not after cw_stacks_request_cancel().
 * user must not belong to another request.
 */
void cw_stacks_request(struct cw_stacks *s, const struct cw_caller *caller, const json_t *arguments,
		       cw_stacks_fn fn, void *user);
/* The node that leads the wanted job. */
enum cw_stacks_request_place {
	CW_STACKS_HERE = 0, /* also if several jobs match: cw_stacks_request() reports it */
	CW_STACKS_LED_BY_PEER,
	CW_STACKS_UNKNOWN,
};
/* leader is filled for CW_STACKS_LED_BY_PEER. */
enum cw_stacks_request_place cw_stacks_request_place(struct cw_stacks *s,
						     const struct cw_caller *caller,
						     const json_t *arguments, char *leader,
						     size_t len);
void cw_stacks_request_cancel(struct cw_stacks *s, const void *user);

/* Answers requests that are ready. Call it several times a second while there are requests. */
void cw_stacks_request_tick(struct cw_stacks *s);
bool cw_stacks_request_is_idle(const struct cw_stacks *s);
