/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lab/suite/generate.h"
#include "lab/suite/scenario/scenario.h"

#define HEAD "scenario s\nranks 8 per-node 4\ncomm world all\n"
#define PROGRAM_LATE "program\ninit late\nend\n"
#define PROGRAM "program\nloop\nall_reduce world\nsync\nend\nend\n"

static struct suite_scenario got[8];
static unsigned n_got;

static int keep(void *user, const struct suite_scenario *s)
{
	(void)user;
	if (n_got < 8)
		got[n_got] = *s; /* its programs are gone after the call */
	n_got++;
	return 0;
}

static struct cw_err err;

static int read_lines(const char *text, uint64_t max_lines)
{
	n_got = 0;
	err.text[0] = 0;
	return cw_suite_read_text(text, strlen(text), "f.scn", max_lines, keep, NULL, &err);
}

static void expect_error(const char *text, const char *where, const char *what)
{
	cr_expect_eq(read_lines(text, 1000), -EINVAL);
	cr_expect(strncmp(err.text, where, strlen(where)) == 0, "%s", err.text);
	cr_expect(strstr(err.text, what), "%s", err.text);
}

Test(suite_read, reads_a_scenario)
{
	cr_assert_eq(read_lines(HEAD PROGRAM "fault 3 at 8s on world all_reduce change count 7\n"
					     "expect mismatch count 3 or never_entered\nend\n",
				1000),
		     0, "%s", err.text);
	cr_assert_eq(n_got, 1);
	cr_expect_eq(got[0].n_ranks, 8);
	cr_expect_eq(got[0].n_faults, 1);
	cr_expect_eq(got[0].faults[0].value, 7);
	cr_expect_eq(got[0].faults[0].at_ns, INT64_C(8000000000));
	cr_expect_eq(got[0].n_answers, 2);
	cr_expect_eq(got[0].answers[0].verdict_class, CW_CLASS_MISMATCH);
	cr_expect(got[0].answers[0].has_culprits);
	cr_expect(!got[0].answers[1].has_culprits);
}

Test(suite_read, shares_ranks_out_among_processes)
{
	cr_assert_eq(
		read_lines("scenario s\nranks 8 per-node 4 per-process 2\ncomm world all\n" PROGRAM
			   "expect silence\nend\n" HEAD PROGRAM "expect silence\nend\n",
			   1000),
		0, "%s", err.text);
	cr_expect_eq(got[0].per_process, 2);
	cr_expect_eq(got[1].per_process, 1);
	expect_error("scenario s\nranks 8 per-node 4 per-process 3\n", "f.scn:2:", "processes");
	expect_error("scenario s\nranks 8 per-node 2 per-process 4\n", "f.scn:2:", "processes");
	expect_error("scenario s\nranks 8 per-node 2 per-process 0\n", "f.scn:2:", "processes");
}

Test(suite_read, repeats_and_definitions_expand)
{
	cr_assert_eq(read_lines("define job\nranks $N\ncomm world all\nenddef\n"
				"repeat K in 2 4\nrepeat OP in reduce scatter\n"
				"scenario \"$K of $OP\"\nuse job N=$K\n"
				"program\n$OP world root 1\nend\nexpect silence\nend\n"
				"done\ndone\n",
				1000),
		     0, "%s", err.text);
	cr_assert_eq(n_got, 4);
	cr_expect_eq(got[3].n_ranks, 4);
	cr_expect_str_eq(got[3].name, "4 of scatter");
	cr_expect_eq(got[0].n_answers, 0);
}

Test(suite_read, sets_of_ranks)
{
	cr_assert_eq(read_lines(HEAD PROGRAM "fault not 0-2,6- at 1s block\n"
					     "fault every 4 from 1 at 1s block\n"
					     "expect silence\nend\n",
				1000),
		     0, "%s", err.text);
	for (uint32_t r = 0; r < 8; r++) {
		cr_expect_eq(cw_suite_set_has(&got[0].faults[0].set, r), r >= 3 && r < 6, "%u", r);
		cr_expect_eq(cw_suite_set_has(&got[0].faults[1].set, r), r == 1 || r == 5, "%u", r);
	}
}

Test(suite_read, says_where_it_went_wrong)
{
	expect_error("ranks 8\n", "f.scn:1: ", "ranks");
	expect_error("repeat X in 0123456789012345678901234567890123456789\n"
		     "scenario $X $X $X $X $X\ndone\n",
		     "f.scn:2: ", "name");
	expect_error(HEAD "program\nall_reduce wurld\nend\nend\n", "f.scn:5: ", "wurld");
	expect_error(HEAD "program\nsend world 4\nend\nend\n", "f.scn:5: ", "whom");
	expect_error(HEAD PROGRAM "expect sadness\nend\n", "f.scn:10: ", "sadness");
	expect_error(HEAD PROGRAM "end\n", "f.scn:10: ", "expected");
	expect_error(HEAD PROGRAM, "f.scn:1: ", "does not end");
	expect_error("repeat X in a\n", "f.scn:1: ", "done");
	expect_error("use nothing\n", "f.scn:1: ", "nothing");
	expect_error("scenario $X\n", "f.scn:1: ", "$X");
	expect_error(HEAD "program\ngroup\nsync\nend\nend\nend\n", "f.scn:6: ", "group");
}

Test(suite_read, what_ranks_came_with)
{
	cr_assert_eq(read_lines("scenario s\nranks 8\ncomm late all by init\n" PROGRAM_LATE
				"nccl 5 2.21.5\nenvironment odd 7\nenvironment 1 own\n"
				"told 3 late 9\nexpect silence\nend\n",
				1000),
		     0, "%s", err.text);
	cr_assert_eq(got[0].n_traits, 4);
	cr_expect_eq(got[0].traits[0].kind, SUITE_VERSION);
	cr_expect_eq(got[0].traits[0].value, 22105);
	cr_expect(cw_suite_set_has(&got[0].traits[0].set, 5));
	cr_expect_eq(got[0].traits[1].value, 7);
	cr_expect_eq(got[0].traits[2].value, SUITE_OWN);
	cr_expect_eq(got[0].traits[3].value, 9);
	expect_error(HEAD "nccl 5 2.21\n", "f.scn:4: ", "2.21");
	expect_error(HEAD "nccl 5 2.21.5x\n", "f.scn:4: ", "2.21.5x");
	expect_error(HEAD "nccl 5 2.-1.5\n", "f.scn:4: ", "2.-1.5");
	expect_error(HEAD "environment 5 much\n", "f.scn:4: ", "much");
	expect_error(HEAD "told 5 world 9\n", "f.scn:4: ", "by init");
}

Test(suite_read, several_incidents)
{
	cr_assert_eq(read_lines(HEAD PROGRAM "expect mismatch 1 or unknown\nalso deadlock 2\n"
					     "also never_entered 3 or p2p_unmatched 3\nend\n",
				1000),
		     0, "%s", err.text);
	cr_expect_eq(suite_n_incidents(&got[0]), 3);
	cr_expect_eq(got[0].n_answers, 5);
	cr_expect_eq(got[0].answers[1].incident, 0);
	cr_expect_eq(got[0].answers[2].incident, 1);
	cr_expect_eq(got[0].answers[4].incident, 2);
	cr_expect(!got[0].is_alone);
	cr_assert_eq(read_lines(HEAD PROGRAM "expect mismatch 1\nalso nothing\nend\n", 1000), 0);
	cr_expect_eq(suite_n_incidents(&got[0]), 1);
	cr_expect(got[0].is_alone);
	expect_error(HEAD PROGRAM "also unknown\n", "f.scn:10: ", "also");
	expect_error(HEAD PROGRAM "expect silence\nalso unknown\n", "f.scn:11: ", "also");
	expect_error(HEAD PROGRAM "expect unknown\nalso nothing\nalso unknown\n",
		     "f.scn:12: ", "also");
	expect_error(HEAD PROGRAM "expect unknown\nalso unknown\nexpect unknown\n",
		     "f.scn:12: ", "before");
}

Test(suite_read, graphs_hold_what_can_be_captured)
{
	cr_assert_eq(read_lines(HEAD "program\ngraph on 3\nall_reduce world\ncompute 2ms\n"
				     "group\nreduce world\nend\nend\nend\n"
				     "expect silence\nend\n",
				1000),
		     0, "%s", err.text);
	expect_error(HEAD "program\ngraph\nsync\n", "f.scn:6: ", "graph");
	expect_error(HEAD "program\ngraph\nsend world to next\n", "f.scn:6: ", "graph");
	expect_error(HEAD "program\ngraph\nall_reduce world on 2\n", "f.scn:6: ", "stream");
	expect_error(HEAD "program\ngraph\ngraph\n", "f.scn:6: ", "graph");
	expect_error(HEAD "program\ngroup\ngraph\n", "f.scn:6: ", "group");
}

Test(suite_read, expansion_is_bounded)
{
	static const char bomb[] =
		"repeat A in 1 2 3 4 5 6 7 8\nrepeat B in 1 2 3 4 5 6 7 8\n"
		"repeat C in 1 2 3 4 5 6 7 8\nrepeat D in 1 2 3 4 5 6 7 8\n" HEAD PROGRAM
		"expect silence\nend\ndone\ndone\ndone\ndone\n";

	cr_expect_eq(read_lines(bomb, 1000), -E2BIG);
	cr_expect(strstr(err.text, "too many lines"), "%s", err.text);
	cr_expect_eq(read_lines("define a\nuse a\nenddef\nuse a\n", 100000), -E2BIG);
}

Test(suite_read, jobs_grow_unless_ranks_would_have_no_program)
{
	cr_assert_eq(read_lines(HEAD PROGRAM "expect silence\nend\n"
					     "scenario t\nranks 4\ncomm pair 0,3\n"
					     "program\nall_reduce pair\nend\nexpect silence\nend\n"
					     "scenario u\nranks 4\ncomm pair 0,3\n"
					     "program 0-3\nall_reduce pair\nend\n"
					     "expect silence\nend\n",
				1000),
		     0, "%s", err.text);
	cr_expect(cw_suite_scenario_scale(&got[0], 16));
	cr_expect_eq(got[0].n_ranks, 128);
	cr_expect(!cw_suite_scenario_scale(&got[0], 65536));
	cr_expect(cw_suite_scenario_scale(&got[1], 2), "a pair stays a pair");
	cr_expect(!cw_suite_scenario_scale(&got[2], 2));
}

Test(suite_read, drawn_scenarios_are_the_same_for_the_same_seed)
{
	struct suite_scenario first;

	n_got = 0;
	cr_assert_eq(cw_suite_generate(5, 7, keep, NULL, &err), 0, "%s", err.text);
	first = got[4];
	n_got = 0;
	cr_assert_eq(cw_suite_generate(8, 7, keep, NULL, &err), 0, "%s", err.text);
	cr_expect_str_eq(got[4].name, first.name);
	cr_expect_eq(got[4].seed, first.seed);
	n_got = 0;
	cr_assert_eq(cw_suite_generate(5, 8, keep, NULL, &err), 0, "%s", err.text);
	cr_expect_neq(got[4].seed, first.seed);
}

Test(suite_read, pages_and_notices)
{
	cr_assert_eq(read_lines(HEAD PROGRAM
				"job-timeout 10min\nno-notices\n"
				"expect notice never_entered 3 or notice unknown\nend\n",
				1000),
		     0, "%s", err.text);
	cr_expect_eq(got[0].n_answers, 2);
	cr_expect(got[0].answers[0].is_notice && got[0].answers[1].is_notice);
	cr_expect(suite_expects_notice(&got[0]) && suite_is_control(&got[0]));
	cr_expect_eq(got[0].job_timeout_ns, INT64_C(600000000000));
	cr_expect(got[0].has_no_notices);
}

Test(suite_read, silence_or_a_page)
{
	cr_assert_eq(read_lines(HEAD PROGRAM "expect silence or never_entered 3\nend\n", 1000), 0,
		     "%s", err.text);
	cr_expect_eq(got[0].n_answers, 1);
	cr_expect(got[0].may_be_silent && !got[0].answers[0].is_notice);
	expect_error(HEAD PROGRAM "expect silence or\n", "f.scn:10: ", "class");
	expect_error(HEAD PROGRAM "expect notice\n", "f.scn:10: ", "class");
	expect_error(HEAD PROGRAM "expect notice slow 3\n", "f.scn:10: ", "slow");
	expect_error(HEAD PROGRAM "expect notice unknown\nalso unknown\n", "f.scn:11: ", "also");
	expect_error(HEAD PROGRAM "job-timeout 0s\n", "f.scn:10: ", "14 days");
}

Test(suite_read, what_a_job_dies_of)
{
	cr_assert_eq(read_lines(HEAD PROGRAM
				"watchdog 60s\nwatchdog 30s of 0-1 on world\n"
				"launcher grace 5s apart 20s saves 3s\n"
				"expect postmortem process_dead exited 3 or in_collective nobody\n"
				"expect silence or process_dead 3\nend\n",
				1000),
		     0, "%s", err.text);
	cr_expect_eq(got[0].n_postmortems, 2);
	cr_expect_eq(got[0].postmortems[0].detail, CW_DETAIL_EXITED);
	cr_expect(cw_suite_set_has(&got[0].postmortems[0].culprits, 3));
	cr_expect(got[0].postmortems[1].is_nobody);
	cr_expect_eq(got[0].n_answers, 1);
	cr_expect_eq(got[0].n_watchdogs, 2);
	cr_expect_eq(got[0].watchdogs[0].after_ns, INT64_C(60000000000));
	cr_expect_eq(got[0].watchdogs[0].family, SUITE_NONE);
	cr_expect(cw_suite_set_has(&got[0].watchdogs[0].set, 3));
	cr_expect_eq(got[0].watchdogs[1].family, 0);
	cr_expect(!cw_suite_set_has(&got[0].watchdogs[1].set, 3));
	cr_expect(got[0].launcher.is_there);
	cr_expect_eq(got[0].launcher.grace_ns, INT64_C(5000000000));
	cr_expect_eq(got[0].launcher.apart_ns, INT64_C(20000000000));
	cr_expect_eq(got[0].launcher.saves_ns, INT64_C(3000000000));
	cr_assert_eq(
		read_lines(HEAD PROGRAM "expect postmortem nothing\nexpect silence\nend\n", 1000),
		0, "%s", err.text);
	cr_expect(got[0].has_no_postmortem && suite_expects_postmortem(&got[0]));
	expect_error(HEAD PROGRAM "expect postmortem unknown\nend\n", "f.scn:11: ", "expected");
	expect_error(HEAD PROGRAM "expect postmortem\n", "f.scn:10: ", "class");
	expect_error(HEAD PROGRAM "expect postmortem notice unknown\n", "f.scn:10: ", "class");
	expect_error(HEAD PROGRAM "expect postmortem slow 3\n", "f.scn:10: ", "late");
	expect_error(HEAD PROGRAM "expect postmortem unknown\nexpect postmortem nothing\n",
		     "f.scn:11: ", "one post-mortem");
	expect_error(HEAD PROGRAM "launcher patience 3s\n", "f.scn:10: ", "patience");
	expect_error(HEAD PROGRAM "watchdog 0s\n", "f.scn:10: ", "14 days");
	expect_error(HEAD PROGRAM
		     "watchdog 9s\nwatchdog 9s\nwatchdog 9s\nwatchdog 9s\nwatchdog 9s\n",
		     "f.scn:14: ", "too many");
}

Test(suite_read, calls_that_fail_and_processes_that_are_late)
{
	cr_assert_eq(
		read_lines(HEAD PROGRAM
			   "lazy world\nstarts 3 after 5s\nstarts not 3 within 2min\n"
			   "fault 1 at 5s on world all_reduce fails\n"
			   "fault 1 at 5s on world fails exit 7\n"
			   "fault 1 at 5s on world fails block\nfault 2 at 9s on world errors\n"
			   "node 0 at 5s suspended for 6s\nexpect silence\nend\n",
			   1000),
		0, "%s", err.text);
	cr_expect(got[0].families[0].is_lazy);
	cr_expect_eq(got[0].traits[0].kind, SUITE_STARTS_AT);
	cr_expect_eq(got[0].traits[1].kind, SUITE_STARTS);
	cr_expect_eq(got[0].traits[1].value, UINT64_C(120000000000));
	cr_expect_eq(got[0].faults[0].action, SUITE_FAILS);
	cr_expect_eq(got[0].faults[0].field, SUITE_FAILED_GOES_ON);
	cr_expect_eq(got[0].faults[1].field, SUITE_FAILED_EXITS);
	cr_expect_eq(got[0].faults[1].value, 7);
	cr_expect_eq(got[0].faults[2].field, SUITE_FAILED_STANDS);
	cr_expect_eq(got[0].faults[3].action, SUITE_ERRORS);
	cr_expect_eq(got[0].faults[4].action, SUITE_NODE_SUSPENDED);
	cr_expect(!suite_fault_is_between_daemons(&got[0].faults[4]));
	expect_error(HEAD PROGRAM "lazy nowhere\n", "f.scn:10: ", "nowhere");
	expect_error(HEAD PROGRAM "starts 3 before 5s\n", "f.scn:10: ", "after what time");
	expect_error(HEAD PROGRAM "fault 1 at 5s on world fails often\n", "f.scn:10: ", "often");
}

/* ---- faults of daemons ---- */

#define EXPECT "expect silence\nend\n"

Test(suite_read, daemons_are_killed_and_cut_off)
{
	cr_assert_eq(read_lines(HEAD PROGRAM
				"node 1 at 5s killed for 6s\nnode 0 at 7s cut from 1 for 8s\n"
				"node 1 at 9s stalled\nleader at 10s cut for 3s\n"
				"leader at 20s anew\n" EXPECT,
				1000),
		     0, "%s", err.text);
	cr_assert_eq(got[0].n_faults, 5);
	cr_expect_eq(got[0].faults[0].action, SUITE_NODE_KILLED);
	cr_expect_not(suite_fault_is_between_daemons(&got[0].faults[0]));
	cr_expect_eq(got[0].faults[1].action, SUITE_NODE_CUT);
	cr_expect_not(cw_suite_set_has(&got[0].faults[1].others, 0));
	cr_expect(cw_suite_set_has(&got[0].faults[1].others, 1));
	cr_expect_eq(got[0].faults[2].for_ns, SUITE_FOREVER);
	cr_expect(cw_suite_set_has(&got[0].faults[2].others, 7));
	cr_expect_eq(got[0].faults[3].value, SUITE_LEADER_CUT);
	cr_expect_eq(got[0].faults[4].value, SUITE_LEADER_ANEW);
}

Test(suite_read, alerts_get_lost_and_others_have_many_jobs)
{
	cr_assert_eq(
		read_lines(
			HEAD PROGRAM
			"leader-iteration 4\nalerts at 5s undelivered for 6s\nalerts at 7s muted\n"
			"daemons at 8s reload\ncrowd at 9s 4096 for 3s\n" EXPECT,
			1000),
		0, "%s", err.text);
	cr_expect_eq(got[0].iteration_members, 4);
	cr_assert_eq(got[0].n_faults, 4);
	cr_expect_eq(got[0].faults[0].value, SUITE_ALERTS_UNDELIVERED);
	cr_expect_eq(got[0].faults[0].for_ns, INT64_C(6000000000));
	cr_expect_eq(got[0].faults[1].value, SUITE_ALERTS_MUTED);
	cr_expect_eq(got[0].faults[1].for_ns, SUITE_FOREVER);
	cr_expect_eq(got[0].faults[2].action, SUITE_RELOAD);
	cr_expect_eq(got[0].faults[3].value, 4096);
	for (uint32_t i = 0; i < 4; i++)
		cr_expect(suite_fault_is_between_daemons(&got[0].faults[i]));
	cr_expect_eq(read_lines(HEAD PROGRAM "crowd at 9s 4097\n" EXPECT, 1000), -EINVAL);
	cr_expect_eq(read_lines(HEAD PROGRAM "alerts at 9s late\n" EXPECT, 1000), -EINVAL);
	cr_expect_eq(read_lines(HEAD PROGRAM "leader-iteration 0\n" EXPECT, 1000), -EINVAL);
}

Test(suite_read, digests_come_late_twice_or_never)
{
	cr_assert_eq(read_lines(HEAD PROGRAM
				"digests at 5s late 2500ms every 3 for 60s\n"
				"digests at 6s lost every 4\ndigests at 7s twice every 1\n" EXPECT,
				1000),
		     0, "%s", err.text);
	cr_assert_eq(got[0].n_faults, 3);
	cr_expect_eq(got[0].faults[0].late_ns, INT64_C(2500000000));
	cr_expect_eq(got[0].faults[0].value, 3);
	cr_expect_eq(got[0].faults[1].field, SUITE_DIGESTS_LOST);
	cr_expect_eq(got[0].faults[2].field, SUITE_DIGESTS_TWICE);
}

Test(suite_read, machines_have_clocks_and_versions)
{
	cr_assert_eq(read_lines(HEAD PROGRAM
				"machine all fast 300\nmachine 1 behind 40s slow 20 newer\n" EXPECT,
				1000),
		     0, "%s", err.text);
	cr_assert_eq(got[0].n_machines, 2);
	cr_expect_eq(got[0].machines[0].drift_ppm, 300);
	cr_expect_not(got[0].machines[0].has_ahead);
	cr_expect_eq(got[0].machines[1].ahead_ns, INT64_C(-40000000000));
	cr_expect_eq(got[0].machines[1].drift_ppm, -20);
	cr_expect(got[0].machines[1].is_newer);
}

Test(suite_read, what_befalls_daemons_says_what_is_missing)
{
	expect_error(HEAD PROGRAM "leader at 5s killed\n" EXPECT, "f.scn:10:", "for how long?");
	expect_error(HEAD PROGRAM "leader at 5s sad\n" EXPECT, "f.scn:10:", "a leader is killed");
	expect_error(HEAD PROGRAM "digests at 5s lost\n" EXPECT, "f.scn:10:", "every which");
	expect_error(HEAD PROGRAM "digests at 5s lost every 0\n" EXPECT,
		     "f.scn:10:", "every which");
	expect_error(HEAD PROGRAM "machine 1\n" EXPECT, "f.scn:10:", "what of the machine?");
	expect_error(HEAD PROGRAM "machine 1 behind 1h\n" EXPECT, "f.scn:10:", "15 minutes behind");
	expect_error(HEAD PROGRAM "machine 1 new\n" EXPECT, "f.scn:10:", "what is \"new\"");
	expect_error(HEAD PROGRAM "node 1 at 5s asleep\n" EXPECT, "f.scn:10:", "a node is lost");
}

Test(suite_read, hosts_sleep_in_something)
{
	cr_assert_eq(read_lines(HEAD "program\nsleep 3s\nsleep 3s in tty\nio 3s\n"
				     "io 3s in storage still\nend\n"
				     "fault 3 at 8s on world block\n"
				     "fault 3 at 8s on world block in lock for 5s\n"
				     "fault 3 at 8s on world block in storage moving\n"
				     "fault 3 at 8s on world io\nexpect silence\nend\n",
				1000),
		     0, "%s", err.text);
	cr_expect_eq(got[0].faults[0].wait, CW_HOST_WAIT_QUEUE);
	cr_expect_eq(got[0].faults[1].wait, CW_HOST_WAIT_LOCK);
	cr_expect_eq(got[0].faults[1].for_ns, INT64_C(5000000000));
	cr_expect_eq(got[0].faults[2].action, SUITE_BUSY_IO);
	cr_expect_eq(got[0].faults[3].action, SUITE_BUSY_IO);
	expect_error(HEAD PROGRAM "fault 3 at 8s on world block in bed\n", "f.scn:10: ", "sleeps");
	expect_error(HEAD PROGRAM "fault 3 at 8s on world block in storage\n",
		     "f.scn:10: ", "still or moving");
}
