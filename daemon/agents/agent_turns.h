/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the next hellos to check. Each user has a queue of hellos, and the users take turns. If a
 * user has two thousand hellos, they delay only that user. A user with one hello waits at most as
 * many turns as there are users. A turn is a handful of one user's hellos, and one child checks
 * them together.
 *
 * If we had to kill a user's child, this user and all others like it share a few places. So a user
 * that makes children hang keeps no well-behaved user from a place.
 *
 * Loop thread only; does no input or output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cw_agent_turns;
struct cw_agent_turns_user;

/* A member of a queue. */
struct cw_turn {
	struct cw_turn *prev, *next;
	struct cw_agent_turns_user *user; /* NULL = not queued */
	bool is_alone;                    /* its turn has no other member */
};

struct cw_agent_turns_limits {
	unsigned places;         /* concurrent turns */
	unsigned per_user;       /* limit of one user while others wait */
	unsigned per_user_alone; /* limit while no other user waits; leaves room for newcomers */
	unsigned slow;           /* limit of all slow users together */
};

/* 0 or -ENOMEM. */
int cw_agent_turns_new(const struct cw_agent_turns_limits *limits, struct cw_agent_turns **ret);
/* Takes NULL; returns NULL. Drops the queues, but frees no turn. */
struct cw_agent_turns *cw_agent_turns_free(struct cw_agent_turns *turns);

/* Puts the turn at the end of uid's queue or, if is_first, at the head. 0 or -ENOMEM. */
int cw_agent_turns_wait(struct cw_agent_turns *turns, uid_t uid, struct cw_turn *turn,
			bool is_first);
/* new_turn takes the place of old_turn in its queue; old_turn leaves the queue. */
void cw_agent_turns_replace(struct cw_agent_turns *turns, struct cw_turn *old_turn,
			    struct cw_turn *new_turn);
/* Removes the turn from its queue. */
void cw_agent_turns_leave(struct cw_agent_turns *turns, struct cw_turn *turn);

/*
 * Removes at most max turns from the head of the next user's queue. Together they occupy a place
 * until cw_agent_turns_done(). Returns their number; 0 = no user waits, or no waiting user may have
 * a place.
 */
unsigned cw_agent_turns_take(struct cw_agent_turns *turns, struct cw_turn **ret, unsigned max);
/* Ends a turn of uid; was_slow: it took too long. */
void cw_agent_turns_done(struct cw_agent_turns *turns, uid_t uid, bool was_slow);

/* The number of queued hellos. */
uint32_t cw_agent_turns_waiting(const struct cw_agent_turns *turns);
