/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the next hellos to check. Each user has a queue of hellos, and the users take turns. If a
 * user has two thousand hellos, they delay only that user. A user with one hello waits at most as
 * many batches as there are users. A batch is a handful of one user's hellos, and one child checks
 * them together.
 *
 * A user is slow if we had to kill one of its children. All slow users share a few places, so they
 * keep no well-behaved user from a place.
 *
 * Loop thread only; does no input or output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cw_agent_queue;
struct cw_agent_queue_user;

/* One hello in the queue of its user. */
struct cw_queue_position {
	struct cw_queue_position *prev, *next;
	struct cw_agent_queue_user *user; /* NULL = not queued */
	bool is_alone;                    /* its batch has no other member */
};

struct cw_agent_queue_limits {
	unsigned places;         /* concurrent batches */
	unsigned per_user;       /* limit of one user while others wait */
	unsigned per_user_alone; /* limit while no other user waits; leaves room for newcomers */
	unsigned slow;           /* limit of all slow users together */
};

/* 0 or -ENOMEM. */
int cw_agent_queue_new(const struct cw_agent_queue_limits *limits, struct cw_agent_queue **ret);
/* Takes NULL; returns NULL. Drops the queues, but frees no position. */
struct cw_agent_queue *cw_agent_queue_free(struct cw_agent_queue *queue);

/* Puts the position at the end of uid's queue or, if is_first, at the head. 0 or -ENOMEM. */
int cw_agent_queue_wait(struct cw_agent_queue *queue, uid_t uid, struct cw_queue_position *position,
			bool is_first);
/* Puts new_position where old_position is in its queue. old_position leaves the queue. */
void cw_agent_queue_replace(struct cw_agent_queue *queue, struct cw_queue_position *old_position,
			    struct cw_queue_position *new_position);
/* Removes the position from its queue. */
void cw_agent_queue_leave(struct cw_agent_queue *queue, struct cw_queue_position *position);

/*
 * Removes at most max positions from the head of the next user's queue. Together they occupy one
 * place until cw_agent_queue_done(). Returns their number. 0 = no user waits, or no waiting user
 * may have a place.
 */
unsigned cw_agent_queue_take(struct cw_agent_queue *queue, struct cw_queue_position **ret,
			     unsigned max);
/* Ends a batch of uid. was_slow: the batch took too long. */
void cw_agent_queue_done(struct cw_agent_queue *queue, uid_t uid, bool was_slow);

/* Returns the number of queued hellos. */
uint32_t cw_agent_queue_waiting(const struct cw_agent_queue *queue);
