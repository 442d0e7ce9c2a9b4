/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users with queued hellos form a ring. We serve the first user of the ring, and move this user
 * to the end. A user whose earlier hellos no child is handling goes before a user with such a
 * batch.
 */
#include "daemon/agents/agent_queue.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "common/htable.h"

struct cw_agent_queue_user {
	UT_hash_handle hh;
	uid_t uid;
	struct cw_queue_position *line;
	unsigned taken; /* number of this user's batches at work */
	bool is_slow;
	/* Neighbours in the ring, while the user's queue is not empty. */
	struct cw_agent_queue_user *prev, *next;
};

struct cw_agent_queue {
	struct cw_agent_queue_limits limits;
	struct cw_agent_queue_user *users;
	struct cw_agent_queue_user *ring; /* the next user to serve; NULL = no user waits */
	unsigned n_ring, taken, taken_by_slow;
	uint32_t waiting;
};

static struct cw_agent_queue_user *find(struct cw_agent_queue *queue, uid_t uid)
{
	struct cw_agent_queue_user *u;

	HASH_FIND(hh, queue->users, &uid, sizeof(uid), u);
	return u;
}

static struct cw_agent_queue_user *find_or_add(struct cw_agent_queue *queue, uid_t uid)
{
	struct cw_agent_queue_user *u = find(queue, uid);

	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	HASH_ADD(hh, queue->users, uid, sizeof(u->uid), u);
	if (!cw_htable_added(u)) {
		free(u);
		return NULL;
	}
	return u;
}

static void forget_if_idle(struct cw_agent_queue *queue, struct cw_agent_queue_user *u)
{
	if (u->line || u->taken)
		return;
	HASH_DEL(queue->users, u);
	free(u);
}

static void enter_ring(struct cw_agent_queue *queue, struct cw_agent_queue_user *u)
{
	DL_APPEND(queue->ring, u);
	queue->n_ring++;
}

static void leave_ring(struct cw_agent_queue *queue, struct cw_agent_queue_user *u)
{
	DL_DELETE(queue->ring, u);
	queue->n_ring--;
}

/*
 * Removes the position from its queue. The caller must then check whether the user still has
 * something to do.
 */
static void leave_line(struct cw_agent_queue *queue, struct cw_queue_position *position)
{
	struct cw_agent_queue_user *u = position->user;

	DL_DELETE(u->line, position);
	position->user = NULL;
	queue->waiting--;
	if (!u->line)
		leave_ring(queue, u);
}

int cw_agent_queue_wait(struct cw_agent_queue *queue, uid_t uid, struct cw_queue_position *position,
			bool is_first)
{
	struct cw_agent_queue_user *u = find_or_add(queue, uid);

	if (!u)
		return -ENOMEM;
	if (!u->line)
		enter_ring(queue, u);
	if (is_first)
		DL_PREPEND(u->line, position);
	else
		DL_APPEND(u->line, position);
	position->user = u;
	queue->waiting++;
	return 0;
}

void cw_agent_queue_replace(struct cw_agent_queue *queue, struct cw_queue_position *old_position,
			    struct cw_queue_position *new_position)
{
	struct cw_agent_queue_user *u = old_position->user;

	DL_REPLACE_ELEM(u->line, old_position, new_position);
	new_position->user = u;
	old_position->user = NULL;
}

void cw_agent_queue_leave(struct cw_agent_queue *queue, struct cw_queue_position *position)
{
	struct cw_agent_queue_user *u = position->user;

	leave_line(queue, position);
	forget_if_idle(queue, u);
}

static bool has_place(const struct cw_agent_queue *queue, const struct cw_agent_queue_user *u)
{
	const struct cw_agent_queue_limits *l = &queue->limits;

	if (queue->taken >= l->places || (u->is_slow && queue->taken_by_slow >= l->slow))
		return false;
	return u->taken < (queue->n_ring > 1 ? l->per_user : l->per_user_alone);
}

static unsigned take_from(struct cw_agent_queue *queue, struct cw_agent_queue_user *u,
			  struct cw_queue_position **ret, unsigned max)
{
	unsigned n = 0;

	/*
	 * Move the user behind all others before taking its hellos. Taking the last hello removes
	 * the user from the ring, and we could not move it then.
	 */
	DL_DELETE(queue->ring, u);
	DL_APPEND(queue->ring, u);
	while (n < max && u->line && (n == 0 || !u->line->is_alone)) {
		ret[n] = u->line;
		leave_line(queue, u->line);
		if (ret[n++]->is_alone)
			break;
	}
	u->taken++;
	queue->taken++;
	queue->taken_by_slow += u->is_slow;
	return n;
}

unsigned cw_agent_queue_take(struct cw_agent_queue *queue, struct cw_queue_position **ret,
			     unsigned max)
{
	struct cw_agent_queue_user *u;

	/* Serve users without a batch at work first. */
	DL_FOREACH (queue->ring, u)
		if (!u->taken && has_place(queue, u))
			return take_from(queue, u, ret, max);
	DL_FOREACH (queue->ring, u)
		if (has_place(queue, u))
			return take_from(queue, u, ret, max);
	return 0;
}

void cw_agent_queue_done(struct cw_agent_queue *queue, uid_t uid, bool was_slow)
{
	struct cw_agent_queue_user *u = find(queue, uid);

	if (!u || !u->taken)
		return;
	queue->taken_by_slow -= u->is_slow;
	if (was_slow && !u->is_slow) {
		u->is_slow = true;
		/* Count the user's batches that are still at work as slow. */
		queue->taken_by_slow += u->taken;
		queue->taken_by_slow--;
	}
	u->taken--;
	queue->taken--;
	forget_if_idle(queue, u);
}

uint32_t cw_agent_queue_waiting(const struct cw_agent_queue *queue)
{
	return queue->waiting;
}

int cw_agent_queue_new(const struct cw_agent_queue_limits *limits, struct cw_agent_queue **ret)
{
	struct cw_agent_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	queue->limits = *limits;
	*ret = queue;
	return 0;
}

struct cw_agent_queue *cw_agent_queue_free(struct cw_agent_queue *queue)
{
	struct cw_agent_queue_user *u, *tmp;

	if (!queue)
		return NULL;
	HASH_ITER (hh, queue->users, u, tmp) {
		HASH_DEL(queue->users, u);
		free(u);
	}
	free(queue);
	return NULL;
}
