/* SPDX-License-Identifier: Apache-2.0 */
/* What a leader leaves out because one user would take too much: counted, and nothing else suffers.
 */
#include <criterion/criterion.h>

#include "leader_fixture.h"

#define JOBS (CW_LEADER_MAX_JOBS_PER_ROUTE + 3)
#define ROUTE 4711u

TestSuite(leader_limits, .init = leader_setup, .fini = leader_teardown);

static struct cluster_node *leading(void)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	return &c.nodes[leader];
}

static struct cw_leader_stats stats_of(const struct cluster_node *n)
{
	struct cw_leader_stats stats;

	cw_leader_stats(n->leader, &stats);
	return stats;
}

/* Another user's ranks, each alone in a communicator of so many ranks. */
static void tell(struct cluster_node *n, uint32_t n_ranks, uint32_t nranks)
{
	static struct cw_msg_member members[JOBS];
	static struct cw_msg_rank ranks[JOBS];
	struct cw_message sent = { .type = CW_MSG_DIGEST,
				   .digest = { .route = ROUTE,
					       .label = "many",
					       .uid = 2000,
					       .node = n->name,
					       .epoch = 1,
					       .number = 1,
					       .policy = "training",
					       .ranks = ranks,
					       .n_ranks = n_ranks } };

	for (uint32_t i = 0; i < n_ranks; i++) {
		members[i] = (struct cw_msg_member){
			.comm_id = 1 + i, .nranks = nranks, .name = "", .last_error = ""
		};
		ranks[i] = (struct cw_msg_rank){ .rank = -1,
						 .rank_source = "",
						 .pid = 4000 + (int32_t)i,
						 .uid = 2000,
						 .liveness = CW_LIVE_ALIVE,
						 .flags = CW_RANKF_HAS_RECORD,
						 .command = "",
						 .headway_by = "",
						 .cause = "",
						 .members = &members[i],
						 .n_members = 1 };
	}
	leader_hear(n, &sent);
	(void)cw_leader_tick(n->leader);
}

Test(leader_limits, jobs_of_a_route_beyond_the_limit_are_counted)
{
	struct cluster_node *n = leading();

	tell(n, JOBS, 1);
	cr_expect_eq(stats_of(n).refused_jobs, 3);
	cr_expect_eq(stats_of(n).jobs, 1 + CW_LEADER_MAX_JOBS_PER_ROUTE);
}

Test(leader_limits, communicators_that_claim_to_be_huge_are_counted)
{
	struct cluster_node *n = leading();

	tell(n, 2, UINT32_MAX);
	cr_expect_eq(stats_of(n).left_out_comms, 2);
	cr_expect_eq(stats_of(n).jobs, 3);
}

Test(leader_limits, nothing_is_counted_of_an_ordinary_job)
{
	struct cluster_node *n = leading();

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 30));
	cr_expect_eq(stats_of(n).refused_jobs, 0);
	cr_expect_eq(stats_of(n).left_out_comms, 0);
	cr_expect_eq(stats_of(n).left_out_windows, 0);
}
