/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo/demo_scenario.h"

#include <criterion/criterion.h>

static bool is_right(const char *scenario, const char *text, int culprit, int ranks)
{
	const struct demo_scenario *s = demo_scenario_find(scenario);
	struct demo_case run = { .ranks = ranks, .nodes = 2, .culprit = culprit };
	json_t *doc = json_loads(text, 0, NULL);
	bool right;

	cr_assert_not_null(s);
	cr_assert_not_null(doc);
	right = demo_scenario_is_right(s, doc, &run);
	json_decref(doc);
	return right;
}

Test(demo_scenario, only_the_class_with_that_one_culprit_is_right)
{
	const char *text = "{\"class\":\"never_entered\",\"detail\":\"outside_nccl\","
			   "\"culprits\":[{\"rank\":3}]}";

	cr_assert(is_right("never-entered", text, 3, 8));
	cr_assert_not(is_right("never-entered", text, 2, 8));
	cr_assert_not(is_right("wrong-count", text, 3, 8));
	cr_assert_not(is_right("stopped-rank", text, 3, 8), "another detail");
	cr_assert_not(is_right("healthy", text, 3, 8));
	cr_assert_not(is_right("never-entered",
			       "{\"class\":\"never_entered\",\"detail\":\"outside_nccl\","
			       "\"culprits\":[{\"rank\":3},{\"rank\":4}]}",
			       3, 8));
	cr_assert_not(is_right("never-entered", "{\"class\":\"never_entered\"}", 3, 8));
	cr_assert_not(is_right("never-entered", "{}", -1, 8));
}

Test(demo_scenario, healthy_is_right_only_when_it_says_so)
{
	cr_assert(is_right("healthy", "{\"schema\":\"collwatch.healthy/1\"}", -1, 8));
	cr_assert_not(is_right("healthy", "{\"schema\":\"collwatch.incident/1\"}", -1, 8));
	cr_assert_not(is_right("killed-rank", "{\"schema\":\"collwatch.healthy/1\"}", -1, 8));
}

Test(demo_scenario, the_default_shows_a_data_loader)
{
	cr_assert_str_eq(demo_scenario_default()->name, "never-entered");
	cr_assert_null(demo_scenario_find("never"));
}

Test(demo_scenario, a_cycle_of_two_is_both)
{
	const char *text = "{\"class\":\"deadlock\",\"detail\":\"order\","
			   "\"culprits\":[{\"rank\":0},{\"rank\":1}]}";

	cr_assert(is_right("two-comm-deadlock", text, 1, 2));
	cr_assert_not(is_right("two-comm-deadlock", text, 1, 3));
}

Test(demo_scenario, both_ends_of_the_link_are_to_blame_for_the_network)
{
	const char *both = "{\"class\":\"in_collective\",\"detail\":\"connection\","
			   "\"culprits\":[{\"rank\":1},{\"rank\":2}]}";
	const char *one = "{\"class\":\"in_collective\",\"detail\":\"connection\","
			  "\"culprits\":[{\"rank\":1}]}";
	const char *none = "{\"class\":\"in_collective\",\"culprits\":[]}";

	cr_assert(is_right("network-stall", both, 1, 4));
	cr_assert_not(is_right("network-stall", both, 3, 4), "of another link");
	cr_assert_not(is_right("network-stall", one, 1, 4));
	cr_assert_not(is_right("network-stall", none, 1, 4));
}

Test(demo_scenario, a_lost_node_is_all_ranks_of_it)
{
	const char *all =
		"{\"class\":\"node_unreachable\",\"culprits\":[{\"rank\":2},{\"rank\":3}]}";
	const char *one = "{\"class\":\"node_unreachable\",\"culprits\":[{\"rank\":2}]}";
	const char *twice =
		"{\"class\":\"node_unreachable\",\"culprits\":[{\"rank\":2},{\"rank\":2}]}";

	cr_assert(is_right("dead-node", all, 2, 4));
	cr_assert(is_right("dead-node", all, 3, 4));
	cr_assert_not(is_right("dead-node", all, 1, 4), "of the other node");
	cr_assert_not(is_right("dead-node", one, 2, 4));
	cr_assert_not(is_right("dead-node", twice, 2, 4));
}

Test(demo_scenario, a_job_that_fails_is_judged_by_its_postmortem)
{
	const char *postmortem = "{\"schema\":\"collwatch.incident/1\",\"class\":\"process_dead\","
				 "\"detail\":\"exited\",\"culprits\":[{\"rank\":2}],\"ends\":[]}";
	const char *alert = "{\"schema\":\"collwatch.incident/1\",\"class\":\"process_dead\","
			    "\"detail\":\"exited\",\"culprits\":[{\"rank\":2}]}";

	cr_assert(is_right("cascade", postmortem, 2, 4));
	cr_assert_not(is_right("cascade", postmortem, 1, 4), "another rank");
	cr_assert_not(is_right("cascade", alert, 2, 4), "an alert is no post-mortem");
}
