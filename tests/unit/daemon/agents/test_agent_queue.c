/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agents/agent_queue.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define MANY 2000
#define BATCH 32

static const struct cw_agent_queue_limits limits = {
	.places = 8, .per_user = 2, .per_user_alone = 6, .slow = 4
};

static struct cw_queue_position many[3][MANY];

static struct cw_agent_queue *queue_new(void)
{
	struct cw_agent_queue *queue;

	cr_assert_eq(cw_agent_queue_new(&limits, &queue), 0);
	return queue;
}

static void wait_many(struct cw_agent_queue *queue, uid_t uid, struct cw_queue_position *of,
		      unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(cw_agent_queue_wait(queue, uid, &of[i], false), 0);
}

Test(agent_queue, a_newcomer_waits_for_one_batch_of_each_user_not_for_their_queues)
{
	struct cw_queue_position *got[BATCH], newcomer = { 0 };
	struct cw_agent_queue *queue = queue_new();

	wait_many(queue, 1, many[0], MANY);
	wait_many(queue, 2, many[1], MANY);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), BATCH);
	cr_assert_eq(cw_agent_queue_wait(queue, 3, &newcomer, false), 0);
	cr_assert_eq(cw_agent_queue_waiting(queue), 2 * MANY - BATCH + 1);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), BATCH);
	cr_assert_eq(got[0], &many[1][0]);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 1, "before the first user's second");
	cr_assert_eq(got[0], &newcomer);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), BATCH);
	cr_assert_eq(got[0], &many[0][BATCH]);
	cw_agent_queue_free(queue);
}

Test(agent_queue, users_who_are_many_leave_places_to_others)
{
	struct cw_queue_position *got[BATCH], newcomer = { 0 };
	struct cw_agent_queue *queue = queue_new();
	unsigned taken = 0;

	wait_many(queue, 1, many[0], MANY);
	while (cw_agent_queue_take(queue, got, BATCH) > 0)
		taken++;
	cr_assert_eq(taken, limits.per_user_alone, "alone, it leaves two");
	wait_many(queue, 2, many[1], MANY);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), BATCH);
	cr_assert_eq(got[0], &many[1][0]);
	cr_assert_eq(cw_agent_queue_wait(queue, 3, &newcomer, false), 0);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 1);
	cr_assert_eq(got[0], &newcomer);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 0, "all places are taken");
	for (unsigned i = 0; i < limits.per_user_alone; i++)
		cw_agent_queue_done(queue, 1, false);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), BATCH);
	cw_agent_queue_free(queue);
}

Test(agent_queue, users_whose_children_hang_share_few_places)
{
	struct cw_queue_position *got[BATCH], others[16] = { 0 }, newcomer = { 0 };
	struct cw_agent_queue *queue = queue_new();

	for (unsigned i = 0; i < 16; i++)
		cr_assert_eq(cw_agent_queue_wait(queue, 100 + i, &others[i], false), 0);
	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 1);
	for (unsigned i = 0; i < 8; i++) {
		/* It comes again before its child is given up: so it is remembered. */
		cr_assert_eq(cw_agent_queue_wait(queue, 100 + i, &many[0][i], false), 0);
		cw_agent_queue_done(queue, 100 + i, true);
	}
	for (unsigned i = 8; i < 16; i++) {
		cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 1);
		cr_assert_eq(got[0], &others[i]);
		cw_agent_queue_done(queue, 100 + i, false);
	}
	for (unsigned i = 0; i < limits.slow; i++)
		cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 1);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 0, "four of them at once");
	cr_assert_eq(cw_agent_queue_wait(queue, 3, &newcomer, false), 0);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 1);
	cr_assert_eq(got[0], &newcomer);
	cw_agent_queue_free(queue);
}

Test(agent_queue, one_that_took_too_long_has_a_batch_for_itself)
{
	struct cw_queue_position *got[BATCH];
	struct cw_agent_queue *queue = queue_new();

	wait_many(queue, 1, many[0], 10);
	many[0][4].is_alone = true;
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 4);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 1);
	cr_assert_eq(got[0], &many[0][4]);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 5);
	cw_agent_queue_free(queue);
}

Test(agent_queue, who_comes_again_keeps_its_place)
{
	struct cw_queue_position *got[BATCH], again = { 0 };
	struct cw_agent_queue *queue = queue_new();

	wait_many(queue, 1, many[0], 3);
	cw_agent_queue_replace(queue, &many[0][1], &again);
	cw_agent_queue_leave(queue, &many[0][0]);
	cr_assert_eq(cw_agent_queue_waiting(queue), 2);
	cr_assert_eq(cw_agent_queue_take(queue, got, BATCH), 2);
	cr_assert_eq(got[0], &again);
	cr_assert_eq(got[1], &many[0][2]);
	cr_assert_eq(cw_agent_queue_waiting(queue), 0);
	cw_agent_queue_done(queue, 1, false);
	cw_agent_queue_free(queue);
}
