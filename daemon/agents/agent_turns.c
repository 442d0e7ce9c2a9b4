/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring holds the users whose queue is not empty; its head is next. A served user moves to the end
 * of the ring. Users without a child at work go before users with one.
 */
#include "daemon/agents/agent_turns.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "common/htable.h"

struct cw_agent_turns_user {
	UT_hash_handle hh;
	uid_t uid;
	struct cw_turn *line;
	unsigned taken; /* places in use */
	bool is_slow;
	struct cw_agent_turns_user *prev, *next; /* in the ring, while its queue is not empty */
};

struct cw_agent_turns {
	struct cw_agent_turns_limits limits;
	struct cw_agent_turns_user *users;
	struct cw_agent_turns_user *ring; /* its head is next */
	unsigned n_ring, taken, taken_by_slow;
	uint32_t waiting;
};

static struct cw_agent_turns_user *find(struct cw_agent_turns *turns, uid_t uid)
{
	struct cw_agent_turns_user *u;

	HASH_FIND(hh, turns->users, &uid, sizeof(uid), u);
	return u;
}

static struct cw_agent_turns_user *find_or_add(struct cw_agent_turns *turns, uid_t uid)
{
	struct cw_agent_turns_user *u = find(turns, uid);

	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	HASH_ADD(hh, turns->users, uid, sizeof(u->uid), u);
	if (!cw_htable_added(u)) {
		free(u);
		return NULL;
	}
	return u;
}

static void forget_if_idle(struct cw_agent_turns *turns, struct cw_agent_turns_user *u)
{
	if (u->line || u->taken)
		return;
	HASH_DEL(turns->users, u);
	free(u);
}

static void enter_ring(struct cw_agent_turns *turns, struct cw_agent_turns_user *u)
{
	DL_APPEND(turns->ring, u);
	turns->n_ring++;
}

static void leave_ring(struct cw_agent_turns *turns, struct cw_agent_turns_user *u)
{
	DL_DELETE(turns->ring, u);
	turns->n_ring--;
}

/* The caller must check afterwards whether the user has become idle. */
static void leave_line(struct cw_agent_turns *turns, struct cw_turn *turn)
{
	struct cw_agent_turns_user *u = turn->user;

	DL_DELETE(u->line, turn);
	turn->user = NULL;
	turns->waiting--;
	if (!u->line)
		leave_ring(turns, u);
}

int cw_agent_turns_wait(struct cw_agent_turns *turns, uid_t uid, struct cw_turn *turn,
			bool is_first)
{
	struct cw_agent_turns_user *u = find_or_add(turns, uid);

	if (!u)
		return -ENOMEM;
	if (!u->line)
		enter_ring(turns, u);
	if (is_first)
		DL_PREPEND(u->line, turn);
	else
		DL_APPEND(u->line, turn);
	turn->user = u;
	turns->waiting++;
	return 0;
}

void cw_agent_turns_replace(struct cw_agent_turns *turns, struct cw_turn *old_turn,
			    struct cw_turn *new_turn)
{
	struct cw_agent_turns_user *u = old_turn->user;

	DL_REPLACE_ELEM(u->line, old_turn, new_turn);
	new_turn->user = u;
	old_turn->user = NULL;
}

void cw_agent_turns_leave(struct cw_agent_turns *turns, struct cw_turn *turn)
{
	struct cw_agent_turns_user *u = turn->user;

	leave_line(turns, turn);
	forget_if_idle(turns, u);
}

static bool has_place(const struct cw_agent_turns *turns, const struct cw_agent_turns_user *u)
{
	const struct cw_agent_turns_limits *l = &turns->limits;

	if (turns->taken >= l->places || (u->is_slow && turns->taken_by_slow >= l->slow))
		return false;
	return u->taken < (turns->n_ring > 1 ? l->per_user : l->per_user_alone);
}

static unsigned take_from(struct cw_agent_turns *turns, struct cw_agent_turns_user *u,
			  struct cw_turn **ret, unsigned max)
{
	unsigned n = 0;

	/* Move the user behind all others first, because its queue may become empty. */
	DL_DELETE(turns->ring, u);
	DL_APPEND(turns->ring, u);
	while (n < max && u->line && (n == 0 || !u->line->is_alone)) {
		ret[n] = u->line;
		leave_line(turns, u->line);
		if (ret[n++]->is_alone)
			break;
	}
	u->taken++;
	turns->taken++;
	turns->taken_by_slow += u->is_slow;
	return n;
}

unsigned cw_agent_turns_take(struct cw_agent_turns *turns, struct cw_turn **ret, unsigned max)
{
	struct cw_agent_turns_user *u;

	/* Users without a place go before users with one. */
	DL_FOREACH (turns->ring, u)
		if (!u->taken && has_place(turns, u))
			return take_from(turns, u, ret, max);
	DL_FOREACH (turns->ring, u)
		if (has_place(turns, u))
			return take_from(turns, u, ret, max);
	return 0;
}

void cw_agent_turns_done(struct cw_agent_turns *turns, uid_t uid, bool was_slow)
{
	struct cw_agent_turns_user *u = find(turns, uid);

	if (!u || !u->taken)
		return;
	turns->taken_by_slow -= u->is_slow;
	if (was_slow && !u->is_slow) {
		u->is_slow = true;
		turns->taken_by_slow += u->taken; /* its turns still at work */
		turns->taken_by_slow--;
	}
	u->taken--;
	turns->taken--;
	forget_if_idle(turns, u);
}

uint32_t cw_agent_turns_waiting(const struct cw_agent_turns *turns)
{
	return turns->waiting;
}

int cw_agent_turns_new(const struct cw_agent_turns_limits *limits, struct cw_agent_turns **ret)
{
	struct cw_agent_turns *turns = calloc(1, sizeof(*turns));

	if (!turns)
		return -ENOMEM;
	turns->limits = *limits;
	*ret = turns;
	return 0;
}

struct cw_agent_turns *cw_agent_turns_free(struct cw_agent_turns *turns)
{
	struct cw_agent_turns_user *u, *tmp;

	if (!turns)
		return NULL;
	HASH_ITER (hh, turns->users, u, tmp) {
		HASH_DEL(turns->users, u);
		free(u);
	}
	free(turns);
	return NULL;
}
