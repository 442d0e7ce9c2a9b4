/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/features.h"

static char said[256];

static void say(const char *what)
{
	size_t len = strlen(said);

	(void)snprintf(said + len, sizeof(said) - len, "%s ", what);
}

static void first_start(void)
{
	say("first:start");
}

static void first_ready(int c)
{
	say(c == 7 ? "first:ready-7" : "first:ready");
}

static void second_start(void)
{
	say("second:start");
}

static void second_armed(void)
{
	say("second:armed");
}

static void second_forget(int c)
{
	say(c == 9 ? "second:forget-9" : "second:forget");
}

static void second_beat(void)
{
	say("second:beat");
}

static const struct cw_feature table[] = {
	{ .start = first_start, .comm_ready = first_ready },
	{ .start = second_start,
	  .armed = second_armed,
	  .comm_forget = second_forget,
	  .beat = second_beat },
};

static void each_moment_once(void)
{
	cw_features_start();
	cw_features_comm_ready(7);
	cw_features_armed();
	cw_features_beat();
	cw_features_comm_forget(9);
}

Test(agent_features, reach_who_asks_for_the_moment_in_the_order_of_the_table)
{
	cw_features_set(table, 2);
	each_moment_once();
	cr_assert_str_eq(said, "first:start second:start first:ready-7 second:armed second:beat "
			       "second:forget-9 ");
}

Test(agent_features, are_none_before_the_table_is_set)
{
	each_moment_once();
	cr_assert_str_eq(said, "");
}
