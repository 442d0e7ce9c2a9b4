/* SPDX-License-Identifier: Apache-2.0 */
/* Which scenarios can be processes; that they are right is shown by tests/suite (suite-processes).
 */
#include "lab/cli/suite_processes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define HEAD "ranks 4 per-node 2\ncomm world all\n"
#define LOOP "program\nloop\nall_reduce world 64\nsync\nend\nend\n"

static int on_scenario(void *user, const struct suite_scenario *s)
{
	*(const char **)user = suite_processes_obstacle(s);
	return 0;
}

static const char *obstacle_of(const char *head, const char *program, const char *fault)
{
	const char *obstacle = "not read";
	struct cw_err err = { "" };
	char text[1024];

	(void)snprintf(text, sizeof(text), "scenario s\n%s%s%s\n%send\n", head, program, fault,
		       strstr(fault, "expect") ? "" : "expect silence\n");
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 100, on_scenario, &obstacle, &err),
		     0, "%s", err.text);
	return obstacle;
}

Test(suite_processes, ordinary_jobs_and_faults_can_be)
{
	cr_expect_null(obstacle_of(HEAD, LOOP, ""));
	cr_expect_null(obstacle_of(HEAD, LOOP, "fault 2 at 4s on world all_reduce block"));
	cr_expect_null(obstacle_of(HEAD, LOOP, "fault 2 at 4s kill 9"));
	cr_expect_null(obstacle_of(HEAD, LOOP, "fault 2 at 4s on world change count 3"));
	cr_expect_null(obstacle_of(HEAD, LOOP, "fault 2 at 4s on world slow 1s for 5s"));
}

Test(suite_processes, graphs_can_be_where_their_comms_keep_to_one_stream)
{
	cr_expect_null(obstacle_of(HEAD,
				   "program\ngraph\nall_reduce world\nend\n"
				   "all_reduce world\nend\n",
				   ""));
	cr_expect_null(obstacle_of(HEAD "comm side all\n",
				   "program\ngraph on 1\nall_reduce world\nend\n"
				   "all_reduce side\nall_reduce side on 1\nend\n",
				   ""));
	cr_expect_not_null(obstacle_of(HEAD,
				       "program\ngraph on 1\nall_reduce world\nend\n"
				       "all_reduce world\nend\n",
				       ""));
}

Test(suite_processes, what_one_machine_cannot_have_is_omitted)
{
	cr_expect_not_null(obstacle_of("ranks 32 per-node 8\ncomm world all\n", LOOP, ""));
	cr_expect_not_null(obstacle_of("ranks 8 per-node 1\ncomm world all\n", LOOP, ""));
	cr_expect_not_null(obstacle_of(HEAD "no-progress\n", LOOP, ""));
	cr_expect_not_null(obstacle_of(HEAD "policy serving\n", LOOP, ""));
	cr_expect_not_null(obstacle_of(HEAD "nccl 3 2.21.5\n", LOOP, ""));
	cr_expect_not_null(obstacle_of(HEAD "environment 3 1\n", LOOP, ""));
	cr_expect_not_null(obstacle_of(HEAD, LOOP, "node 1 at 4s lost"));
	cr_expect_not_null(obstacle_of(HEAD, LOOP, "fault 2 at 4s on world all_reduce wedge"));
	cr_expect_not_null(obstacle_of(HEAD, LOOP, "fault 2 at 4s oom"));
	cr_expect_not_null(obstacle_of(HEAD, LOOP, "expect mismatch 1\nalso unknown\n"));
	cr_expect_not_null(obstacle_of(HEAD, LOOP, "expect mismatch 1\nalso nothing\n"));
	cr_expect_not_null(obstacle_of(HEAD, LOOP, "fault 2 at 90s on world all_reduce block"));
	cr_expect_not_null(obstacle_of(HEAD, "program\nio 1s\nall_reduce world\nend\n", ""));
	cr_expect_not_null(
		obstacle_of(HEAD, "program\nloop\nall_reduce world 99999999\nend\nend\n", ""));
}
