/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual cluster behaves as docs/design/testing.md describes a simulated NCCL. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/suite/watch.h"
#include "lab/vjob/cluster.h"
#include "record/record_layout.h"

#define S INT64_C(1000000000)
#define HEAD "scenario s\nranks 4 per-node 2\ncomm world all\n"
#define LOOP "program\nloop\nwork 20ms\nall_reduce world 64\nbroadcast world 32\nsync\nend\nend\n"

static struct cw_snapshot *snap;
static const char *at; /* seconds after which to look */

static int look(void *user, const struct suite_scenario *s)
{
	struct cw_err err = { "" };

	(void)user;
	cr_assert_eq(cw_watch_snapshot(s, atoi(at) * S, &err, &snap), 0, "%s", err.text);
	return 0;
}

static const struct cw_snap_member *run(const char *seconds, const char *fault)
{
	char text[1024];
	struct cw_err err;

	(void)snprintf(text, sizeof(text), HEAD LOOP "%s\nexpect silence\nend\n", fault);
	at = seconds;
	snap = cw_snapshot_free(snap);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, look, NULL, &err), 0, "%s",
		     err.text);
	cr_assert_eq(snap->n_comms, 1);
	return snap->comms[0].members;
}

static void fini(void)
{
	snap = cw_snapshot_free(snap);
}

TestSuite(suite_cluster, .fini = fini);

Test(suite_cluster, a_healthy_job_gets_on)
{
	const struct cw_snap_member *m = run("10", "");

	for (unsigned i = 0; i < 4; i++) {
		cr_expect_gt(m[i].coll_completed, 300);
		cr_expect_eq(m[i].known & CW_KNOWN_COMPLETED, CW_KNOWN_COMPLETED);
		cr_expect_gt(m[i].interval_ns, 0);
	}
	cr_expect_neq(m[0].checkpoints[0].coll_seq, 0);
	cr_expect_eq(m[0].checkpoints[0].coll_seq % 8, 0);
	for (unsigned i = 0; i < CW_SNAP_CHECKPOINTS; i++)
		for (unsigned k = 0; k < CW_SNAP_CHECKPOINTS; k++)
			if (m[0].checkpoints[i].coll_seq == m[1].checkpoints[k].coll_seq)
				cr_expect_eq(m[0].checkpoints[i].hash, m[1].checkpoints[k].hash);
	cr_expect_neq(snap->ranks[0].sampled_ns, snap->ranks[3].sampled_ns);
}

Test(suite_cluster, all_wait_for_the_one_outside)
{
	const struct cw_snap_member *m = run("20", "fault 2 at 5s on world broadcast block");
	uint64_t seq = m[0].coll_entered;

	cr_expect_eq(seq % 2, 0, "broadcasts have even numbers");
	for (unsigned i = 0; i < 4; i++) {
		cr_expect_eq(m[i].coll_entered, i == 2 ? seq - 1 : seq);
		cr_expect_eq(m[i].coll_completed, seq - 1);
		cr_expect_eq(m[i].pending != NULL, i != 2);
	}
	cr_expect_lt(snap->ranks[2].host_activity_ns, CLUSTER_ORIGIN_NS + 7 * S);
	cr_expect_gt(snap->ranks[1].host_activity_ns, CLUSTER_ORIGIN_NS + 18 * S);
}

Test(suite_cluster, who_expects_least_gets_out)
{
	const struct cw_snap_member *m =
		run("20", "fault 2 at 5s on world all_reduce change count 8");

	cr_expect_eq(m[2].coll_completed, m[0].coll_completed + 1);
	cr_expect_eq(m[2].coll_entered, m[0].coll_entered);
	cr_expect_eq(m[0].pending->coll_seq, m[0].coll_completed + 1);
}

Test(suite_cluster, another_root_holds_everybody)
{
	const struct cw_snap_member *m =
		run("20", "fault 2 at 5s on world broadcast change root 1");

	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(m[i].pending->coll_seq, m[i].coll_completed + 1);
	cr_expect_eq(m[2].pending->root, 1);
}

Test(suite_cluster, another_operator_holds_nobody)
{
	const struct cw_snap_member *before = run("6", "");
	uint64_t seq = before[0].coll_completed;
	const struct cw_snap_member *m =
		run("20", "fault 2 at 5s on world all_reduce change redop max");

	cr_expect_gt(m[0].coll_completed, seq);
	cr_expect_neq(m[0].hash, m[2].hash);
}

Test(suite_cluster, an_empty_call_is_not_counted)
{
	const struct cw_snap_member *m =
		run("20", "fault 2 at 5s on world all_reduce change count 0");

	/* Its next broadcast meets the others' all_reduce: no rank gets out. */
	cr_expect_eq(m[2].coll_entered, m[0].coll_entered - 1);
	cr_expect_eq(m[2].coll_completed, m[0].coll_completed);
}

Test(suite_cluster, the_dead_are_seen_to_be_dead)
{
	(void)run("20", "fault 2 at 5s kill 11");
	cr_expect_eq(snap->ranks[2].liveness, CW_LIVE_KILLED);
	cr_expect_eq(snap->ranks[2].term_signal, 11);
	cr_expect_eq(snap->ranks[2].flags & CW_RANKF_SHUTDOWN, 0);
	cr_expect_gt(snap->ranks[2].ended_ns, CLUSTER_ORIGIN_NS + 5 * S - 1);
}

Test(suite_cluster, a_lost_node_keeps_its_last_state)
{
	(void)run("30", "node 1 at 5s lost");
	cr_expect_eq(snap->nodes[1].state, CW_NODE_UNREACHABLE);
	cr_expect_eq(snap->nodes[0].state, CW_NODE_REPORTING);
	cr_expect_eq(snap->ranks[3].liveness, CW_LIVE_ALIVE);
}

Test(suite_cluster, the_same_scenario_gives_the_same_snapshot)
{
	uint64_t hash = run("20", "fault 2 at 5s block")[1].hash;

	cr_expect_eq(run("20", "fault 2 at 5s block")[1].hash, hash);
}

/* ---- faults of the watchers ---- */

static struct outcome watched;

static int watch_it(void *user, const struct suite_scenario *s)
{
	struct cw_err err;

	(void)user;
	cw_outcome_fini(&watched);
	cr_assert_eq(cw_watch(s, &err, &watched), 0, "%s", err.text);
	return 0;
}

static struct cw_member_facts fast_forwarded[4];

static int fast_forward_it(void *user, const struct suite_scenario *s)
{
	struct cluster *c = NULL;
	struct cw_err err;

	(void)user;
	cr_assert_eq(cluster_new(s, CLUSTER_ORIGIN_NS, &err, &c), 0);
	cr_assert_eq(cluster_run(c, CLUSTER_ORIGIN_NS + 100 * S), 0);
	cr_assert(cluster_is_well(c));
	cluster_fast_forward(c, 40 * 3600 * S);
	cr_assert_eq(cluster_run(c, CLUSTER_ORIGIN_NS + (40 * 3600 + 200) * S), 0);
	cr_assert(cluster_is_well(c));
	for (uint32_t node = 0; node < 2; node++) {
		struct cw_arena arena = { 0 };
		struct cw_msg_rank *ranks;
		uint32_t n;

		cr_assert_eq(cluster_digest_ranks(c, node, &arena, &ranks, &n), 0);
		cr_assert_eq(n, 2);
		for (uint32_t i = 0; i < n; i++)
			fast_forwarded[2 * node + i] = ranks[i].members[0].member_facts;
		cw_arena_fini(&arena);
	}
	(void)cluster_free(c);
	return 0;
}

static void watch_text(const char *head, const char *rest)
{
	char text[2048];
	struct cw_err err;

	(void)snprintf(text, sizeof(text), "%s%s", head, rest);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, watch_it, NULL, &err), 0,
		     "%s", err.text);
}

Test(suite_cluster, new_daemons_remember_nothing_and_old_ones_everything)
{
	const struct cw_snap_member *m = run("40", "daemons at 20s stop for 5s");

	cr_expect_gt(m[0].interval_ns, 0);
	cr_expect_lt(m[0].progress_ns, CLUSTER_ORIGIN_NS + 41 * S);
	m = run("28", "fault 2 at 5s on world block\ndaemons at 20s restart for 5s");
	cr_expect_eq(m[0].interval_ns, 0);
	cr_expect_geq(snap->ranks[2].host_activity_ns, CLUSTER_ORIGIN_NS + 25 * S,
		      "a daemon knows no host activity from before it began");
	cr_expect_lt(m[0].pending->enter_ns, CLUSTER_ORIGIN_NS + 6 * S, "the record does");
}

Test(suite_cluster, a_clock_that_is_set_moves_wall_time_only)
{
	int64_t wall;

	(void)run("20", "");
	wall = snap->wall_ns;
	(void)run("20", "clock at 5s forward 1h\nclock at 6s back 3h");
	cr_expect_eq(snap->wall_ns, wall - 7200 * S);
	cr_expect_eq(snap->now_ns, CLUSTER_ORIGIN_NS + 20 * S);
}

/* ---- until when nothing happens ---- */

static int64_t rests_ns;

static int rest_it(void *user, const struct suite_scenario *s)
{
	struct cluster *c = NULL;
	struct cw_err err;

	(void)user;
	cr_assert_eq(cluster_new(s, CLUSTER_ORIGIN_NS, &err, &c), 0);
	cr_assert_eq(cluster_run(c, CLUSTER_ORIGIN_NS + 100 * S), 0);
	rests_ns = cluster_rests_until(c);
	(void)cluster_free(c);
	return 0;
}

static int64_t rests_until_s(const char *program)
{
	struct cw_err err;
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "scenario s\nranks 4 per-node 2\ncomm world all\nprogram\n%s"
		       "all_reduce world\nsync\nloop\nwork 1s\nall_reduce world\nsync\nend\n"
		       "end\nexpect silence\nend\n",
		       program);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, rest_it, NULL, &err), 0,
		     "%s", err.text);
	return rests_ns == SUITE_FOREVER ? -1 : (rests_ns - CLUSTER_ORIGIN_NS) / S;
}

static void is_between(int64_t s, int64_t low, int64_t high)
{
	cr_expect_geq(s, low, "%ld", (long)s);
	cr_expect_leq(s, high, "%ld", (long)s);
}

Test(suite_cluster, rests_until_whoever_works_is_done)
{
	is_between(rests_until_s("only 2\nwork 500s\nend\n"), 490, 510);
	is_between(rests_until_s("only 2\nio 500s\nend\nonly 1\nsleep 300s\nend\n"), 294, 306);
	/* All step. */
	is_between(rests_until_s(""), 99, 101);
}

Test(suite_cluster, rests_while_a_loop_turns)
{
	is_between(rests_until_s("only 2\nloop 1000\nwork 20ms\ncompute 500ms\nsync\nend\nend\n"),
		   500, 525);
	/* A kernel beside the host's work takes none of its time. */
	is_between(rests_until_s("only 2\nloop 1000\ncompute 400ms\nwork 500ms\nsync\nend\nend\n"),
		   485, 505);
	is_between(rests_until_s("only 2\nloop 10\nloop 10\nonly 2\nwork 4s\nend\nonly 1\n"
				 "work 9s\nend\nend\nend\nend\n"),
		   380, 405);
}

#define LONG HEAD "fast-forward\n" LOOP "run 50h\n"

Test(suite_cluster, fast_forwarding_leaves_out_what_is_well_and_nothing_else)
{
	watch_text(LONG, "fault 2 at 30h on world io for 200s\nexpect silence\nend\n");
	cr_expect(!watched.is_alert, "%s", watched.summary);
	cr_expect(!watched.is_fault_missing);
	cr_expect_gt(watched.fast_forwarded_ns, 49 * 3600 * S);
	cr_expect_gt(watched.n_checks, 200, "all of the stall is looked at");
	watch_text(LONG, "fault 2 at 30h on world block\nexpect never_entered 2\nend\n");
	cr_expect(watched.is_alert);
	cr_expect_lt(watched.after_ns, 610 * S);
	watch_text(LONG, "fault 2 at 30h on world add\nexpect mismatch 2\nend\n");
	cr_expect_eq(watched.verdict_class, CW_CLASS_MISMATCH, "%s", watched.summary);
	cw_outcome_fini(&watched);
}

Test(suite_cluster, numbers_go_on_while_fast_forwarding_alike_for_all)
{
	static const char text[] = LONG "expect silence\nend\n";
	struct cw_err err;

	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, fast_forward_it, NULL, &err),
		     0);
	cr_expect_gt(fast_forwarded[0].coll_completed, 3000000u);
	for (unsigned i = 1; i < 4; i++)
		cr_expect_leq(fast_forwarded[i].coll_completed - fast_forwarded[0].coll_completed +
				      200,
			      400u);
	cr_expect_gt(fast_forwarded[0].op_index, 3000000u);
}
