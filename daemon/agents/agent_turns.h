/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is looked at next: hellos wait in a line of their own for each user, and the users take
 * turns. A user with two thousand of them waits for its own; a user with one is at most as many
 * turns away as there are users. Each turn is a handful of one user's hellos, looked at together by
 * one child.
 *
 * A user whose child had to be killed shares few places with all others of that kind: whoever makes
 * children hang keeps nobody but itself from a place.
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

/* Part of what waits. */
struct cw_turn {
	struct cw_turn *prev, *next;
	struct cw_agent_turns_user *user; /* NULL = does not wait */
	bool is_alone;                    /* shares its turn with nobody */
};

struct cw_agent_turns_limits {
	unsigned places;         /* turns at once */
	unsigned per_user;       /* of one user while others wait */
	unsigned per_user_alone; /* of one user while nobody else does; leaves room for newcomers */
	unsigned slow;           /* of all users who were slow */
};

/* 0 or -ENOMEM. */
int cw_agent_turns_new(const struct cw_agent_turns_limits *limits, struct cw_agent_turns **ret);
/* Takes NULL; returns NULL. What waits is forgotten. */
struct cw_agent_turns *cw_agent_turns_free(struct cw_agent_turns *turns);

/* Puts it at the end of uid's line, or, is_first, at the head. 0 or -ENOMEM. */
int cw_agent_turns_wait(struct cw_agent_turns *turns, uid_t uid, struct cw_turn *turn,
			bool is_first);
/* new_turn takes the place of old_turn in its line; the latter waits no more. */
void cw_agent_turns_replace(struct cw_agent_turns *turns, struct cw_turn *old_turn,
			    struct cw_turn *new_turn);
/* It waits no more. */
void cw_agent_turns_leave(struct cw_agent_turns *turns, struct cw_turn *turn);

/*
 * The next user's first ones, at most max, which wait no more: it takes a place until
 * cw_agent_turns_done(). Number of them; 0 = nobody waits, or who does has no place.
 */
unsigned cw_agent_turns_take(struct cw_agent_turns *turns, struct cw_turn **ret, unsigned max);
/* A turn of uid is over; was_slow: it took too long. */
void cw_agent_turns_done(struct cw_agent_turns *turns, uid_t uid, bool was_slow);

/* How many wait. */
uint32_t cw_agent_turns_waiting(const struct cw_agent_turns *turns);
