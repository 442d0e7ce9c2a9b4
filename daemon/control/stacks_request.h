/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collwatch stacks`: takes the stacks of a job, or of one rank, on a user's request. If this node
 * leads the job, we ask all nodes of the job. Otherwise we take only the stacks of this node's
 * ranks. We read Python stacks from outside of the process, and native stacks only on request, of
 * one rank, or of a rank without a Python stack. If we cannot read a Python stack, and a hang is
 * confirmed, the agent may take them instead. Otherwise it may not, because walking a running
 * interpreter from inside its process is not safe (docs/design/evidence.md#on-demand).
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
/* Maximum number of requests at the same time, of all users together. */
#define CW_STACKS_MAX_RUNNING 4u
/* Maximum number of users whose last request we remember. */
#define CW_STACKS_MAX_USERS 64u
/*
 * Time limit of a request. We then answer with the stacks that we have. The command line waits a
 * bit longer.
 */
#define CW_STACKS_WITHIN_NS (30 * CW_NS_PER_S)

struct cw_stacks_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const struct cw_leader_effects *effects; /* send the queries for stacks to other nodes */
	struct cw_leader *leader;
	struct cw_election *members;
	struct cw_node *node;
};

/* Borrows all pointers of config. Returns 0 or -ENOMEM. */
int cw_stacks_request_new(const struct cw_stacks_config *config, struct cw_stacks **ret);
/* Ends open requests without calling their fn. Takes NULL; returns NULL. */
struct cw_stacks *cw_stacks_request_free(struct cw_stacks *s);

/* Returns the number of requests refused since the start because of a limit. */
uint64_t cw_stacks_request_refused(const struct cw_stacks *s);

/* Receives the answer, and takes its content. */
typedef void (*cw_stacks_fn)(struct cw_control_answer *answer, void *user);

/*
 * Starts a request. arguments: {"job": its label or the part after the colon, "rank": number,
 * "native": true for native stacks of ranks with Python stacks, "all_threads": true for all Python
 * threads}; all keys are optional. We call fn exactly once, never from inside this call, and not
 * after cw_stacks_request_cancel(). Each open request needs a `user` of its own.
 */
void cw_stacks_request(struct cw_stacks *s, const struct cw_caller *caller, const json_t *arguments,
		       cw_stacks_fn fn, void *user);
/* The node that leads the wanted job. */
enum cw_stacks_request_place {
	/* This node, or several jobs match, which cw_stacks_request() then reports. */
	CW_STACKS_HERE = 0,
	CW_STACKS_LED_BY_PEER,
	CW_STACKS_UNKNOWN,
};
/*
 * Finds the node that leads the wanted job. For CW_STACKS_LED_BY_PEER, writes its name into leader.
 */
enum cw_stacks_request_place cw_stacks_request_place(struct cw_stacks *s,
						     const struct cw_caller *caller,
						     const json_t *arguments, char *leader,
						     size_t len);
void cw_stacks_request_cancel(struct cw_stacks *s, const void *user);

/*
 * Answers the requests that are complete or too late. Call this several times a second while
 * cw_stacks_request_is_idle() is false.
 */
void cw_stacks_request_tick(struct cw_stacks *s);
bool cw_stacks_request_is_idle(const struct cw_stacks *s);
