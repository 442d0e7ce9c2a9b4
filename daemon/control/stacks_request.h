/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collwatch stacks`: the stacks of a job, or of one rank, because somebody wants to see them now.
 * Of a job led here all nodes are asked; of another one, the ranks of this node. Python is asked
 * only while a hang is confirmed: the walk through a running interpreter is not safe
 * (docs/design/evidence.md#on-demand).
 *
 * A user sees his own jobs, and gets one answer at a time and one in CW_STACKS_EVERY_NS.
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
/* At once, of all users. */
#define CW_STACKS_MAX_RUNNING 4u
/* Users whose last time is remembered. */
#define CW_STACKS_MAX_USERS 64u
/* When the answer is given with what there is; the command line waits a little longer. */
#define CW_STACKS_WITHIN_NS (30 * CW_NS_PER_S)

struct cw_stacks_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	const struct cw_leader_effects *effects; /* by which a survey asks */
	struct cw_leader *leader;
	struct cw_election *members;
	struct cw_node *node;
};

/* All borrowed. 0 or -ENOMEM. */
int cw_stacks_request_new(const struct cw_stacks_config *config, struct cw_stacks **ret);
/* Takes NULL; returns NULL. Nobody is called back any more. */
struct cw_stacks *cw_stacks_request_free(struct cw_stacks *s);

/* Requests beyond a limit so far. */
uint64_t cw_stacks_request_refused(const struct cw_stacks *s);

/* Takes the answer's content. */
typedef void (*cw_stacks_fn)(struct cw_control_answer *answer, void *user);

/*
 * arguments: {"job": label or the part of it after the colon, "rank": number}, either may be
 * missing. The callback comes exactly once, never from inside this call, or not at all after
 * cw_stacks_request_cancel(). user must not be in use by another request.
 */
void cw_stacks_request(struct cw_stacks *s, const struct cw_caller *caller, const json_t *arguments,
		       cw_stacks_fn fn, void *user);
/* Where the job that is meant is led. */
enum cw_stacks_request_place {
	CW_STACKS_HERE = 0, /* or several are meant, which is for cw_stacks_request() to say */
	CW_STACKS_ELSEWHERE,
	CW_STACKS_UNKNOWN,
};
/* leader is filled for CW_STACKS_ELSEWHERE. */
enum cw_stacks_request_place cw_stacks_request_place(struct cw_stacks *s,
						     const struct cw_caller *caller,
						     const json_t *arguments, char *leader,
						     size_t len);
void cw_stacks_request_cancel(struct cw_stacks *s, const void *user);

/* Gives answers that are ready. Call it several times a second while there are requests. */
void cw_stacks_request_tick(struct cw_stacks *s);
bool cw_stacks_request_is_idle(const struct cw_stacks *s);
