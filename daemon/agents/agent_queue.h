/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the hellos that we check next. Each user has a queue of hellos, and the users take turns.
 * If a user has two thousand hellos, these delay only that user. A user with one hello waits at
 * most for one batch of each other user. A batch is a handful of one user's hellos, which one child
 * checks together.
 *
 * A user is slow if we had to kill a child that checked its hellos. All slow users together get
 * only a few batches at the same time. They cannot keep other users from a batch.
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
	bool is_alone;                    /* true if no other hello may be in its batch */
};

struct cw_agent_queue_limits {
	unsigned places;   /* maximum number of batches at the same time */
	unsigned per_user; /* maximum number of batches of one user while other users wait */
	/* Maximum number of batches of one user while no other user waits. */
	unsigned per_user_alone;
	unsigned slow; /* maximum number of batches of all slow users together */
};

/* Returns 0 or -ENOMEM. */
int cw_agent_queue_new(const struct cw_agent_queue_limits *limits, struct cw_agent_queue **ret);
/* Drops the queues, but frees no position: these belong to the caller. Takes NULL; returns NULL. */
struct cw_agent_queue *cw_agent_queue_free(struct cw_agent_queue *queue);

/*
 * Puts the position at the end of uid's queue, or at its head if is_first is true. Returns 0 or
 * -ENOMEM.
 */
int cw_agent_queue_wait(struct cw_agent_queue *queue, uid_t uid, struct cw_queue_position *position,
			bool is_first);
/* Puts new_position into the queue in the place of old_position. old_position leaves the queue. */
void cw_agent_queue_replace(struct cw_agent_queue *queue, struct cw_queue_position *old_position,
			    struct cw_queue_position *new_position);
/* Removes the position from its queue. */
void cw_agent_queue_leave(struct cw_agent_queue *queue, struct cw_queue_position *position);

/*
 * Chooses the next user, and removes at most max positions from the head of its queue. These
 * positions are one batch, which counts against the limits until cw_agent_queue_done(). Returns
 * their number. 0 = no user waits, or each waiting user is at a limit.
 */
unsigned cw_agent_queue_take(struct cw_agent_queue *queue, struct cw_queue_position **ret,
			     unsigned max);
/*
 * Ends a batch of uid, so that it no longer counts against the limits. was_slow: we had to kill the
 * batch's child.
 */
void cw_agent_queue_done(struct cw_agent_queue *queue, uid_t uid, bool was_slow);

/* Returns the number of queued hellos. */
uint32_t cw_agent_queue_waiting(const struct cw_agent_queue *queue);
