/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collwatch stacks`: takes the stacks of a job, or of one rank, on a user's request. If this node
 * leads the job, we ask all its nodes. Otherwise we take the ranks of this node. We read Python
 * stacks from outside. Only while a hang is confirmed may the agent take those that we cannot read,
 * because walking a running interpreter inside its process is not safe
 * (docs/design/evidence.md#on-demand).
 *
 * Users see their own jobs. Each user gets one answer at a time, and one per CW_STACKS_EVERY_NS.
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
/* The limit of concurrent requests of all users. */
#define CW_STACKS_MAX_RUNNING 4u
/* We remember the last request of at most this many users. */
#define CW_STACKS_MAX_USERS 64u
/* After this time we answer with the stacks that we have. The command line waits a bit longer. */
#define CW_STACKS_WITHIN_NS (30 * CW_NS_PER_S)

struct cw_stacks_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const struct cw_leader_effects *effects; /* sends the queries of the stack collection */
	struct cw_leader *leader;
	struct cw_election *members;
	struct cw_node *node;
};

/* Borrows all arguments. 0 or -ENOMEM. */
int cw_stacks_request_new(const struct cw_stacks_config *config, struct cw_stacks **ret);
/* Open requests end without a call of their fn. Takes NULL; returns NULL. */
struct cw_stacks *cw_stacks_request_free(struct cw_stacks *s);

/* Returns the number of requests refused so far because of a limit. */
uint64_t cw_stacks_request_refused(const struct cw_stacks *s);

/* Called with the answer. The callee takes its content. */
typedef void (*cw_stacks_fn)(struct cw_control_answer *answer, void *user);

/*
 * Starts a request. arguments is {"job": label or the part of it after the colon, "rank": number};
 * both keys are optional. fn is called exactly once, never from inside this call, and not after
 * cw_stacks_request_cancel(). No other request may have the same `user`.
 */
void cw_stacks_request(struct cw_stacks *s, const struct cw_caller *caller, const json_t *arguments,
		       cw_stacks_fn fn, void *user);
/* The place where the wanted job is led. */
enum cw_stacks_request_place {
	CW_STACKS_HERE = 0, /* also if several jobs match: cw_stacks_request() then reports that */
	CW_STACKS_LED_BY_PEER,
	CW_STACKS_UNKNOWN,
};
/* Finds the node that leads the wanted job. Fills leader for CW_STACKS_LED_BY_PEER. */
enum cw_stacks_request_place cw_stacks_request_place(struct cw_stacks *s,
						     const struct cw_caller *caller,
						     const json_t *arguments, char *leader,
						     size_t len);
void cw_stacks_request_cancel(struct cw_stacks *s, const void *user);

/* Answers requests that are ready. Call it several times a second while there are requests. */
void cw_stacks_request_tick(struct cw_stacks *s);
bool cw_stacks_request_is_idle(const struct cw_stacks *s);
