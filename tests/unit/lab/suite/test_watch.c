/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios watched through digests and leaders. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "lab/suite/watch.h"

#define HEAD "scenario s\nranks 8 per-node 2\ncomm world all\nrun 120s\n"
#define LOOP "program\nloop\nwork 20ms\nall_reduce world 64\nbroadcast world 32\nsync\nend\nend\n"

static struct outcome said;

static int watch(void *user, const struct suite_scenario *s)
{
	struct cw_err err = { "" };

	cw_outcome_fini(&said);
	cr_assert_eq(cw_watch(s, &err, &said), 0, "%s", err.text);
	return 0;
}

static void run_text(const char *text)
{
	struct cw_err err = { "" };

	cw_log_set_level(CW_LOG_ERR);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, watch, NULL, &err), 0, "%s",
		     err.text);
}

static void run(const char *fault, const char *expect)
{
	char text[2048];

	(void)snprintf(text, sizeof(text), HEAD LOOP "%s\nexpect %s\nend\n", fault, expect);
	run_text(text);
}

static void fini(void)
{
	cw_outcome_fini(&said);
}

TestSuite(watch, .fini = fini);

static void expect_alert(enum cw_class verdict_class, int32_t first, uint32_t n)
{
	cr_assert(said.is_alert);
	cr_expect_eq(said.verdict_class, verdict_class, "%s", said.summary);
	cr_assert_eq(said.n_culprits, n, "%s", said.summary);
	for (uint32_t i = 0; i < n; i++)
		cr_expect_eq(said.culprits[i], first + (int32_t)i);
	cr_expect_null(said.also, "also said: %s", said.also->summary);
}

Test(watch, a_healthy_job_is_not_told_of)
{
	run("", "silence");
	cr_assert_not(said.is_alert);
}

Test(watch, a_rank_that_stays_outside_is_told_of_once)
{
	run("fault 3 at 20s on world block", "never_entered 3");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
}

Test(watch, a_death_is_told_of_within_seconds)
{
	run("fault 5 at 20s kill 11", "process_dead 5");
	expect_alert(CW_CLASS_PROCESS_DEAD, 5, 1);
	cr_expect_lt(said.after_ns, INT64_C(10000000000));
}

Test(watch, whichever_machine_is_lost_its_ranks_are_told)
{
	char fault[64];

	/* One of the four leads the job. */
	for (int node = 0; node < 4; node++) {
		(void)snprintf(fault, sizeof(fault), "node %d at 20s lost", node);
		run(fault, "node_unreachable");
		expect_alert(CW_CLASS_NODE_UNREACHABLE, 2 * node, 2);
	}
}

Test(watch, a_daemon_that_restarts_or_says_nothing_for_a_while_is_no_trouble)
{
	run("node 1 at 20s goodbye for 20s", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
	run("node all at 20s silent for 30s", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
	run("daemons at 20s restart for 10s", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
	run("daemons at 20s stop for 60s", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
}

Test(watch, a_job_that_was_started_anew_is_watched_as_another)
{
	run("job at 20s restart", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
}

Test(watch, a_wrong_operator_is_found_in_the_windows_of_all_nodes)
{
	run("fault 6 at 20s on world all_reduce change redop max", "mismatch 6");
	expect_alert(CW_CLASS_MISMATCH, 6, 1);
}

Test(watch, who_cannot_be_seen_is_one_trouble_however_many_wait)
{
	run_text("scenario s\nranks 8 per-node 2\ncomms row size 4\ncomms col size 2 stride 4\n"
		 "run 400s\nprogram\nloop\nwork 20ms\nall_reduce row 64\nall_reduce col 32\n"
		 "sync\nend\nend\nfault 1 at 0s blind\nfault 1 at 20s on row block\n"
		 "expect notice unknown not_visible nobody\nend\n");
	cr_assert_not(said.is_alert);
	cr_assert_not_null(said.notices);
	cr_expect_eq(said.notices->verdict_class, CW_CLASS_UNKNOWN);
	cr_expect_eq(said.notices->n_culprits, 0);
	cr_expect_null(said.notices->also, "also said: %s", said.notices->also->summary);
}

Test(watch, who_comes_late_is_asked_at_the_end)
{
	run("fault 2 at 10s slow 100ms", "slow 2");
	cr_assert(said.is_slow);
	cr_assert_eq(said.n_culprits, 1);
	cr_expect_eq(said.culprits[0], 2);
}

Test(watch, a_stretch_in_which_all_is_well_is_omitted)
{
	run_text("scenario s\nranks 8 per-node 2\ncomm world all\nrun 3d\nfast-forward\n" LOOP
		 "fault 3 at 2d on world block\nexpect never_entered 3\nend\n");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
	cr_expect_gt(said.fast_forwarded_ns, INT64_C(40) * 3600 * 1000000000);
}

Test(watch, a_page_after_which_they_got_on_is_known_for_it)
{
	run("fault 3 at 20s on world block in lock for 70s", "never_entered 3");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
	cr_expect(said.went_on);
	cr_expect_eq(said.n_healthy_waits, 1);
	run("fault 3 at 20s on world block in lock", "never_entered 3");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
	cr_expect_not(said.went_on);
	cr_expect_eq(said.n_healthy_waits, 0);
}

Test(watch, a_long_wait_that_ends_by_itself_is_counted)
{
	run("fault 3 at 20s on world spin for 70s", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
	cr_expect_eq(said.n_healthy_waits, 1);
	cr_expect_eq(said.healthy_waits[0].length_ns / 1000000000, 70);
	cr_expect_eq(said.healthy_waits[0].pages, 0);
	run("fault 3 at 20s on world spin for 40s", "silence");
	cr_expect_eq(said.n_healthy_waits, 0);
}

/* The middle of a wait changes neither its alerts and notices nor its end. */
static void expect_same_alerts(const char *fault, uint32_t pages, uint32_t notices)
{
	static const char *const fast_forwards[] = { "", "fast-forward waits\n" };
	char text[512];

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(text, sizeof(text), "whole\n%srun 4000s\nfault 3 at 20s on world %s",
			       fast_forwards[i], fault);
		run(text, "silence");
		cr_assert_eq(said.n_healthy_waits, 1);
		cr_expect_eq(said.healthy_waits[0].length_ns / 1000000000, 3000);
		cr_expect_eq(said.healthy_waits[0].pages, pages);
		cr_expect_eq(said.healthy_waits[0].notices, notices);
		cr_expect(i ? said.fast_forwarded_ns > INT64_C(2500) * 1000000000
			    : !said.fast_forwarded_ns);
	}
}

Test(watch, a_wait_in_which_nothing_happens_is_omitted)
{
	expect_same_alerts("spin for 3000s", 0, 1);
	expect_same_alerts("block for 3000s", 1, 1);
	expect_same_alerts("block in tty for 3000s", 0, 1);
}

/* The watch shows events in the middle. */
Test(watch, a_wait_is_shown_where_something_happens)
{
	run("whole\nfast-forward waits\nrun 4000s\nfault 3 at 20s on world spin for 3000s\n"
	    "node 2 at 1500s goodbye for 20s\nfault 5 at 2000s stop for 30s\n"
	    "fault 6 at 2500s kill 9",
	    "process_dead 6");
	expect_alert(CW_CLASS_PROCESS_DEAD, 6, 1);
	cr_expect_lt(said.after_ns, INT64_C(2600) * 1000000000);
}

/*
 * A member's part of a reduce is done when its neighbour has come. It waits for the same rank in
 * the next call: the user that has a notice of the wait gets no second one.
 */
static void is_noticed_once(const char *meanwhile)
{
	char text[704];

	for (unsigned seed = 1; seed <= 6; seed++) {
		(void)snprintf(text, sizeof(text),
			       "scenario s\nranks 4 per-node 2\nseed %u\ncompletion nccl\nwhole\n"
			       "run 3000s\ncomm world all\nprogram\nloop 24\nwork 300ms\n"
			       "reduce world 4096\ncompute 800ms\nall_reduce world fp32 64\nsync\n"
			       "end\nonly 1,3\nio 800s\nend\nonly 0\nio 2600s\nend\nloop\n"
			       "work 300ms\nreduce world 4096\ncompute 160ms\n"
			       "all_reduce world fp32 64\nsync\nend\nend\n%sexpect silence\nend\n",
			       seed, meanwhile);
		run_text(text);
		cr_expect_not(said.is_alert, "%s", said.summary);
		cr_assert_eq(said.n_healthy_waits, 1);
		cr_expect_eq(said.healthy_waits[0].notices, 1, "seed %u %s", seed, meanwhile);
	}
}

Test(watch, a_wait_that_goes_on_in_the_next_call_is_noticed_once)
{
	is_noticed_once("");
}

/* A leader without memory finds the earlier notice. */
Test(watch, a_wait_in_a_later_call_is_noticed_once_whoever_leads)
{
	is_noticed_once("daemons at 1500s restart for 5s\n");
}

/* Of the second its page is counted, and the third is waited for. */
Test(watch, a_job_that_is_watched_whole_is_so_after_a_page)
{
	run("whole\nrun 500s\nfault 3 at 20s on world spin for 70s\n"
	    "fault 3 at 120s on world block in lock for 100s\n"
	    "fault 3 at 400s on world spin for 80s",
	    "silence");
	cr_expect(said.is_alert);
	cr_assert_eq(said.n_healthy_waits, 3);
	cr_expect_eq(said.healthy_waits[0].pages, 0);
	cr_expect_eq(said.healthy_waits[1].pages, 1);
	cr_expect_eq(said.healthy_waits[1].notices, 1);
	cr_expect_eq(said.healthy_waits[2].pages, 0);
}

/* One works, the others look whether it is their turn; then the last one does not get on. */
#define TURNS                                                                                      \
	"scenario s\nranks 3 per-node 1\ncomm world all\nrun 2000s\nprogram\n"                     \
	"all_reduce world 64\nsync\nonly 1\nsleep 300s\nend\nonly 2\nsleep 700s\nend\n"            \
	"child 300s\nonly 1\nchild 100s\nend\n"
#define STEPS "loop\nwork 20ms\nall_reduce world 64\nsync\nend\nend\n"

Test(watch, who_waits_its_turn_is_paged_once_nobody_works)
{
	run_text(TURNS STEPS "expect silence\nend\n");
	cr_expect_not(said.is_alert, "%s", said.summary);
	run_text(TURNS "only 2\nsleep 4000s\nend\n" STEPS "expect never_entered 2\nend\n");
	expect_alert(CW_CLASS_NEVER_ENTERED, 2, 1);
	cr_expect_gt(said.after_ns, INT64_C(1590) * 1000000000);
	cr_expect_lt(said.after_ns, INT64_C(1610) * 1000000000);
}

/* ---- the post-mortem of a job ---- */

static const struct outcome *postmortem_of(const char *how)
{
	run(how, "silence or process_dead or never_entered");
	return said.postmortems;
}

static void expect_postmortem(enum cw_class verdict_class, int32_t rank)
{
	const struct outcome *e = said.postmortems;

	cr_assert_not_null(e);
	cr_expect_eq(e->verdict_class, verdict_class, "%s", e->summary);
	cr_assert_eq(e->n_culprits, 1, "%s", e->summary);
	cr_expect_eq(e->culprits[0], rank, "%s", e->summary);
	cr_expect_null(e->also, "also said: %s", e->also->summary);
}

Test(watch, a_failure_after_which_a_launcher_ends_all_has_a_postmortem)
{
	(void)postmortem_of("fault 3 at 20s exit 1\nlauncher grace 5s apart 10s\n"
			    "expect postmortem process_dead 3");
	expect_postmortem(CW_CLASS_PROCESS_DEAD, 3);
}

Test(watch, a_watchdog_that_ends_the_job_leaves_a_postmortem_of_whom_all_waited_for)
{
	(void)postmortem_of("watchdog 20s\nfault 3 at 20s on world block\nrun 90s\n"
			    "launcher grace 5s\nexpect postmortem never_entered 3");
	expect_postmortem(CW_CLASS_NEVER_ENTERED, 3);
	cr_expect_not(said.is_alert, "it was quicker than our patience");
}

Test(watch, who_saves_before_it_ends_and_who_cannot_is_not_to_blame)
{
	(void)postmortem_of("fault 3 at 20s exit 1\nlauncher grace 4s saves 20s\n"
			    "expect postmortem process_dead 3");
	expect_postmortem(CW_CLASS_PROCESS_DEAD, 3);
	(void)postmortem_of("fault 3 at 20s exit 1\nlauncher grace 30s saves 5s\n"
			    "expect postmortem process_dead 3");
	expect_postmortem(CW_CLASS_PROCESS_DEAD, 3);
}

Test(watch, a_job_that_goes_on_or_is_cancelled_has_no_postmortem)
{
	cr_expect_null(postmortem_of("expect postmortem nothing"));
	cr_expect_null(postmortem_of("job at 30s cancel\nexpect postmortem nothing"));
}

/* The facts are at hand for a caller that checks the alerts. */
static unsigned n_seen;

static void on_incident(void *user, const struct suite_scenario *s, const struct json_t *doc,
			const struct json_t *truth)
{
	(void)user;
	n_seen++;
	cr_expect_eq(json_array_size(json_object_get(truth, "ranks")), s->n_ranks);
	cr_expect_str_eq(json_string_value(json_object_get(doc, "class")), "process_dead");
	cr_expect_str_eq(json_string_value(json_object_get(
				 json_array_get(json_object_get(truth, "ranks"), 5), "life")),
			 "killed");
}

static int watch_incidents(void *user, const struct suite_scenario *s)
{
	const struct watch_observer observer = { .on_incident = on_incident };
	struct cw_err err = { "" };

	(void)user;
	cr_assert_eq(cw_watch_with(s, &observer, &err, &said), 0, "%s", err.text);
	return 0;
}

Test(watch, shows_each_incident_with_what_was_so)
{
	static const char text[] = HEAD LOOP "fault 5 at 20s kill 11\nexpect process_dead 5\nend\n";
	struct cw_err err = { "" };

	cw_log_set_level(CW_LOG_ERR);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, watch_incidents, NULL, &err),
		     0, "%s", err.text);
	cr_expect_gt(n_seen, 0);
}

static unsigned n_views;
static int64_t last_view_ns;

static void on_log(void *user, int64_t ns, const char *node, const char *text)
{
	(void)user;
	if (!strstr(text, ": rank 5 (node-"))
		return;
	n_views++;
	cr_expect_eq(strncmp(node, "node-", 5), 0, "%s", node);
	cr_expect_geq(ns, last_view_ns);
	last_view_ns = ns;
}

static int watch_log(void *user, const struct suite_scenario *s)
{
	const struct watch_observer observer = { .on_log = on_log };
	struct cw_err err = { "" };

	(void)user;
	cr_assert_eq(cw_watch_with(s, &observer, &err, &said), 0, "%s", err.text);
	return 0;
}

Test(watch, shows_what_leaders_think_at_each_evaluation)
{
	static const char text[] =
		HEAD LOOP "fault 5 at 20s on world block\nexpect never_entered 5\nend\n";
	struct cw_err err = { "" };

	cw_log_set_level(CW_LOG_ERR);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, watch_log, NULL, &err), 0,
		     "%s", err.text);
	cr_expect_gt(n_views, 60, "%u views", n_views);
	cr_expect_gt(last_view_ns, 100 * INT64_C(1000000000));
}

static unsigned n_late_notices;

static void on_late_log(void *user, int64_t ns, const char *node, const char *text)
{
	/* The job's name, then what the notice begins with. */
	n_late_notices += strstr(text, "is late: ") != NULL;
	if (strstr(text, "is late: "))
		cr_expect_not_null(strstr(text, ": rank 5 (node-"), "%s", text);
}

static int watch_late_log(void *user, const struct suite_scenario *s)
{
	const struct watch_observer observer = { .on_log = on_late_log };
	struct cw_err err = { "" };

	(void)user;
	cr_assert_eq(cw_watch_with(s, &observer, &err, &said), 0, "%s", err.text);
	cr_expect_not(said.is_alert, "%s", said.summary);
	return 0;
}

static void run_late(const char *body)
{
	char text[1024];
	struct cw_err err = { "" };

	cw_log_set_level(CW_LOG_ERR);
	(void)snprintf(text, sizeof(text),
		       "scenario s\nranks 8 per-node 4\ncomm world all\nrun 300s\n%s\nend\n", body);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, watch_late_log, NULL, &err),
		     0, "%s", err.text);
}

#define LATE_LOOP "program\nloop\nwork 100ms\nall_reduce world 4096\nsync\nend\nend\n"

Test(watch, rank_that_comes_late_is_told_once_and_pages_nobody)
{
	run_late(LATE_LOOP "fault 5 at 60s on world slow 120ms\nexpect slow 5");
	cr_expect_eq(n_late_notices, 1, "%u", n_late_notices);
}

Test(watch, nobody_is_told_of_ranks_that_jitter)
{
	run_late(LATE_LOOP "expect slow nobody");
	cr_expect_eq(n_late_notices, 0, "%u", n_late_notices);
}

/* ---- through flight records ---- */

static void run_recorded(const char *job, const char *fault, const char *expect)
{
	char text[2048];

	(void)snprintf(text, sizeof(text), "%srecorded\n%s\n%s\nexpect %s\nend\n", HEAD, job, fault,
		       expect);
	run_text(text);
	cr_assert(said.is_recorded);
}

Test(watch, what_agents_record_of_a_healthy_job_is_no_trouble)
{
	run_recorded(LOOP, "", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
	run_recorded(LOOP, "daemons at 20s restart for 10s", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
	run_recorded(LOOP, "job at 20s restart", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
}

Test(watch, what_agents_record_tells_of_a_hang)
{
	run_recorded(LOOP, "fault 3 at 20s on world block", "never_entered 3");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
	run_recorded(LOOP, "fault 5 at 20s kill 11", "process_dead 5");
	expect_alert(CW_CLASS_PROCESS_DEAD, 5, 1);
	run_recorded(LOOP, "fault 4 at 20s stop", "never_entered 4");
	expect_alert(CW_CLASS_NEVER_ENTERED, 4, 1);
}

/* The watch shows a device's progress, too, where members complete one by one. */
Test(watch, what_agents_record_tells_of_a_call_that_does_not_end)
{
	run_recorded("completion nccl\n" LOOP, "fault 5 at 20s on world all_reduce wedge",
		     "in_collective");
	cr_assert(said.is_alert);
	cr_expect_eq(said.verdict_class, CW_CLASS_IN_COLLECTIVE, "%s", said.summary);
}

Test(watch, what_agents_record_is_found_in_windows)
{
	run_recorded(LOOP, "fault 6 at 20s on world all_reduce change redop max", "mismatch 6");
	expect_alert(CW_CLASS_MISMATCH, 6, 1);
	run_recorded(LOOP, "fault 2 at 20s on world broadcast change count 99", "mismatch 2");
	expect_alert(CW_CLASS_MISMATCH, 2, 1);
}

/* Groups of sends and receives, and so many launches that hosts wait for room. */
#define PIPELINE                                                                                   \
	"comms pair size 2 by split\nprogram\ninit world\nsplit world into pair\nloop\nwork "      \
	"5ms\ngroup\n"                                                                             \
	"send pair 32 to pair\nrecv pair 32 from pair\nend\nall_reduce world 64\nend\nend\n"

Test(watch, what_agents_record_of_groups_counts_for_each_rank)
{
	run_text("scenario s\nranks 8 per-node 2\nrecorded\ncomm world all by init\n" PIPELINE
		 "expect silence\nend\n");
	cr_assert(said.is_recorded);
	cr_expect_not(said.is_alert, "%s", said.summary);
	run_text(
		"scenario s\nranks 8 per-node 2\nrecorded\nrun 90s\ncomm world all by init\n" PIPELINE
		"fault 1 at 20s on pair skip\nexpect unknown\nend\n");
	cr_assert(said.is_alert);
}

Test(watch, scenarios_that_cannot_be_recorded_are_told_of_as_ever)
{
	run_text(
		"scenario s\nranks 8 per-node 2\ncomm world all\nrun 3d\nfast-forward\nrecorded\n" LOOP
		"fault 3 at 2d on world block\nexpect never_entered 3\nend\n");
	cr_assert_not(said.is_recorded);
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
}

/* ---- faults of daemons ---- */

Test(watch, whoever_leads_may_go_in_mid_diagnosis)
{
	static const char *const how[] = { "killed for 8s", "silent for 8s", "cut for 8s",
					   "stalled for 8s", "anew" };
	char faults[128];

	for (unsigned i = 0; i < 5; i++) {
		(void)snprintf(faults, sizeof(faults),
			       "fault 3 at 20s on world block\nleader at 26s %s", how[i]);
		run(faults, "never_entered 3");
		expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
		cr_expect_not(said.is_fault_missing);
	}
}

Test(watch, a_leader_that_forgets_does_not_tell_again)
{
	run("fault 3 at 20s on world block\nleader at 80s anew\nleader at 90s killed for 5s",
	    "never_entered 3");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
	cr_expect_not(said.is_fault_missing);
}

Test(watch, a_cut_network_between_daemons_is_no_trouble_of_the_job)
{
	run("node 0-1 at 20s cut from 2-3 for 60s", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
	cr_expect_not(said.is_fault_missing);
	run("node 2 at 20s stalled", "silence");
	cr_expect_not(said.is_alert, "%s", said.summary);
}

Test(watch, a_fault_of_a_leader_that_never_was_is_missed)
{
	run("leader at 300s anew", "silence");
	cr_expect(said.is_fault_missing);
}

Test(watch, digests_and_clocks_as_they_come_in_life)
{
	run("digests at 5s late 3s every 2 for 100s\nfault 5 at 20s kill 11", "process_dead 5");
	expect_alert(CW_CLASS_PROCESS_DEAD, 5, 1);
	run("digests at 5s lost every 3\nmachine 1 ahead 20h\nmachine 2 fast 400\n"
	    "fault 3 at 20s on world block",
	    "never_entered 3");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
}

Test(watch, daemons_of_a_later_version_are_understood)
{
	run("machine not 1 newer\nfault 3 at 20s on world block", "never_entered 3");
	expect_alert(CW_CLASS_NEVER_ENTERED, 3, 1);
	run("machine 0 newer\nfault 6 at 20s on world all_reduce change redop max", "mismatch 6");
	expect_alert(CW_CLASS_MISMATCH, 6, 1);
}
