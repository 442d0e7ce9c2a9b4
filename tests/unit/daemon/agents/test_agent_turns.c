/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agents/agent_turns.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define MANY 2000
#define BATCH 32

static const struct cw_agent_turns_limits limits = {
	.places = 8, .per_user = 2, .per_user_alone = 6, .slow = 4
};

static struct cw_turn many[3][MANY];

static struct cw_agent_turns *turns_new(void)
{
	struct cw_agent_turns *turns;

	cr_assert_eq(cw_agent_turns_new(&limits, &turns), 0);
	return turns;
}

static void wait_many(struct cw_agent_turns *turns, uid_t uid, struct cw_turn *of, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(cw_agent_turns_wait(turns, uid, &of[i], false), 0);
}

Test(agent_turns, a_newcomer_waits_for_one_turn_of_each_user_not_for_their_lines)
{
	struct cw_turn *got[BATCH], newcomer = { 0 };
	struct cw_agent_turns *turns = turns_new();

	wait_many(turns, 1, many[0], MANY);
	wait_many(turns, 2, many[1], MANY);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), BATCH);
	cr_assert_eq(cw_agent_turns_wait(turns, 3, &newcomer, false), 0);
	cr_assert_eq(cw_agent_turns_waiting(turns), 2 * MANY - BATCH + 1);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), BATCH);
	cr_assert_eq(got[0], &many[1][0]);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 1, "before the first user's second");
	cr_assert_eq(got[0], &newcomer);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), BATCH);
	cr_assert_eq(got[0], &many[0][BATCH]);
	cw_agent_turns_free(turns);
}

Test(agent_turns, users_who_are_many_leave_places_to_others)
{
	struct cw_turn *got[BATCH], newcomer = { 0 };
	struct cw_agent_turns *turns = turns_new();
	unsigned taken = 0;

	wait_many(turns, 1, many[0], MANY);
	while (cw_agent_turns_take(turns, got, BATCH) > 0)
		taken++;
	cr_assert_eq(taken, limits.per_user_alone, "alone, it leaves two");
	wait_many(turns, 2, many[1], MANY);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), BATCH);
	cr_assert_eq(got[0], &many[1][0]);
	cr_assert_eq(cw_agent_turns_wait(turns, 3, &newcomer, false), 0);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 1);
	cr_assert_eq(got[0], &newcomer);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 0, "all places are taken");
	for (unsigned i = 0; i < limits.per_user_alone; i++)
		cw_agent_turns_done(turns, 1, false);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), BATCH);
	cw_agent_turns_free(turns);
}

Test(agent_turns, users_whose_children_hang_share_few_places)
{
	struct cw_turn *got[BATCH], others[16] = { 0 }, newcomer = { 0 };
	struct cw_agent_turns *turns = turns_new();

	for (unsigned i = 0; i < 16; i++)
		cr_assert_eq(cw_agent_turns_wait(turns, 100 + i, &others[i], false), 0);
	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 1);
	for (unsigned i = 0; i < 8; i++) {
		/* It comes again before its child is given up: so it is remembered. */
		cr_assert_eq(cw_agent_turns_wait(turns, 100 + i, &many[0][i], false), 0);
		cw_agent_turns_done(turns, 100 + i, true);
	}
	for (unsigned i = 8; i < 16; i++) {
		cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 1);
		cr_assert_eq(got[0], &others[i]);
		cw_agent_turns_done(turns, 100 + i, false);
	}
	for (unsigned i = 0; i < limits.slow; i++)
		cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 1);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 0, "four of them at once");
	cr_assert_eq(cw_agent_turns_wait(turns, 3, &newcomer, false), 0);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 1);
	cr_assert_eq(got[0], &newcomer);
	cw_agent_turns_free(turns);
}

Test(agent_turns, one_that_took_too_long_has_a_turn_for_itself)
{
	struct cw_turn *got[BATCH];
	struct cw_agent_turns *turns = turns_new();

	wait_many(turns, 1, many[0], 10);
	many[0][4].is_alone = true;
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 4);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 1);
	cr_assert_eq(got[0], &many[0][4]);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 5);
	cw_agent_turns_free(turns);
}

Test(agent_turns, who_comes_again_keeps_its_place)
{
	struct cw_turn *got[BATCH], again = { 0 };
	struct cw_agent_turns *turns = turns_new();

	wait_many(turns, 1, many[0], 3);
	cw_agent_turns_replace(turns, &many[0][1], &again);
	cw_agent_turns_leave(turns, &many[0][0]);
	cr_assert_eq(cw_agent_turns_waiting(turns), 2);
	cr_assert_eq(cw_agent_turns_take(turns, got, BATCH), 2);
	cr_assert_eq(got[0], &again);
	cr_assert_eq(got[1], &many[0][2]);
	cr_assert_eq(cw_agent_turns_waiting(turns), 0);
	cw_agent_turns_done(turns, 1, false);
	cw_agent_turns_free(turns);
}
