/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, ranks' environments, and several alerts, in the virtual cluster and for its observer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/suite/watch.h"
#include "record/record_layout.h"

#define S INT64_C(1000000000)
#define HEAD "scenario s\nranks 4 per-node 2\ncomm world all\n"
#define STEP "all_reduce world 64\ncompute 10ms\nbroadcast world 32\n"
#define BY_HAND "program\nloop\nwork 20ms\n" STEP "sync\nend\nend\n"
#define REPLAYED "program\nloop\nwork 20ms\ngraph\n" STEP "end\nsync\nend\nend\n"
#define TWO_GROUPS                                                                                 \
	"scenario s\nranks 8 per-node 4\ncomms main size 4\nrun 200s\n"                            \
	"program\nloop\nwork 20ms\nall_reduce main 64\nsync\nend\nend\n"

static struct cw_snapshot *snap;
static struct outcome said;

static int look(void *user, const struct suite_scenario *s)
{
	const int64_t *seconds = user;
	struct cw_err err = { "" };

	cr_assert_eq(cw_watch_snapshot(s, *seconds * S, &err, &snap), 0, "%s", err.text);
	return 0;
}

static const struct cw_snap_member *run(int64_t seconds, const char *text)
{
	struct cw_err err;

	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, look, &seconds, &err), 0,
		     "%s", err.text);
	return snap->comms[0].members;
}

static int listen_to(void *user, const struct suite_scenario *s)
{
	struct cw_err err;

	(void)user;
	return cw_watch(s, &err, &said);
}

static void hear(const char *text)
{
	struct cw_err err = { "" };

	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, listen_to, NULL, &err), 0,
		     "%s", err.text);
}

static void fini(void)
{
	snap = cw_snapshot_free(snap);
	cw_outcome_fini(&said);
}

TestSuite(suite_graph, .fini = fini);

Test(suite_graph, a_replay_is_one_call_and_moves_as_many_numbers_as_by_hand)
{
	const struct cw_snap_member *m = run(10, HEAD REPLAYED "expect silence\nend\n");

	cr_expect_gt(m[0].coll_entered, 300);
	cr_expect_eq(m[0].op_index, m[0].coll_entered / 2);
	cr_assert_not_null(m[0].window);
	for (uint32_t i = 1; i < m[0].n_window; i++) {
		const struct cw_op *a = &m[0].window[i - 1], *b = &m[0].window[i];
		bool is_same = a->coll_seq % 2;

		cr_expect_eq(b->coll_seq, a->coll_seq + 1);
		cr_expect_eq(b->op_index, a->op_index + !is_same);
		cr_expect(is_same == (a->enter_ns == b->enter_ns));
	}
}

Test(suite_graph, history_of_replays_is_that_of_calls)
{
	struct cw_snap_member by_hand = run(10, HEAD BY_HAND "expect silence\nend\n")[0];
	const struct cw_snap_member *m;
	uint32_t n_same = 0;

	snap = cw_snapshot_free(snap);
	m = run(10, HEAD REPLAYED "expect silence\nend\n");
	for (uint32_t i = 0; i < CW_SNAP_CHECKPOINTS; i++)
		for (uint32_t k = 0; k < CW_SNAP_CHECKPOINTS && by_hand.checkpoints[i].coll_seq;
		     k++) {
			if (m[1].checkpoints[k].coll_seq != by_hand.checkpoints[i].coll_seq)
				continue;
			cr_expect_eq(m[1].checkpoints[k].hash, by_hand.checkpoints[i].hash);
			n_same++;
		}
	cr_expect_gt(n_same, 0);
}

Test(suite_graph, a_replay_that_is_stuck_inside_has_begun)
{
	const struct cw_snap_member *m =
		run(20, HEAD REPLAYED "fault 2 at 5s on world broadcast stuck\n"
				      "expect silence\nend\n");

	cr_expect_eq(m[2].coll_completed % 2, 1, "the first of two");
	cr_expect_eq(m[2].coll_reached, m[2].coll_completed);
	cr_expect_eq(m[2].coll_entered, m[2].coll_completed + 1);
	cr_expect_eq(m[0].coll_reached, m[0].coll_entered);
}

Test(suite_graph, nothing_of_a_graph_is_launched_before_its_end)
{
	const struct cw_snap_member *m =
		run(20, HEAD REPLAYED "fault 2 at 5s on world broadcast block\n"
				      "expect silence\nend\n");

	cr_expect_eq(m[2].coll_entered, m[0].coll_entered - 2);
	cr_expect_eq(m[2].coll_completed, m[2].coll_entered);
}

Test(suite_graph, ranks_show_what_they_came_with)
{
	(void)run(5, HEAD REPLAYED "nccl 1 2.21.5\nenvironment all 7\nenvironment 2- own\n"
				   "expect silence\nend\n");
	cr_expect_eq(snap->ranks[0].nccl_version, 22809);
	cr_expect_eq(snap->ranks[1].nccl_version, 22105);
	cr_expect_eq(snap->ranks[1].env_hash, 7);
	cr_expect_neq(snap->ranks[2].env_hash, snap->ranks[3].env_hash);
}

#define LATE "comm late all by init\nprogram\ninit late\nloop\nall_reduce late\nsync\nend\nend\n"

Test(suite_graph, who_is_told_another_size_holds_up_the_making)
{
	const struct cw_snap_member *m =
		run(5, "scenario s\nranks 4\n" LATE "told 1 late 6\nexpect silence\nend\n");

	cr_expect_eq(snap->comms[0].nranks, 6);
	for (uint32_t i = 0; i < 4; i++) {
		cr_expect_eq(m[i].nranks, i == 1 ? 6 : 4);
		cr_expect_eq(m[i].state, CW_COMM_INIT);
	}
}

Test(suite_graph, a_making_may_take_long_or_for_ever)
{
	(void)run(5, "scenario s\nranks 4\n" LATE "fault 3 at 0s on late init wedge for 8s\n"
		     "expect silence\nend\n");
	cr_expect_eq(snap->comms[0].members[0].state, CW_COMM_INIT);
	snap = cw_snapshot_free(snap);
	(void)run(12, "scenario s\nranks 4\n" LATE "fault 3 at 0s on late init wedge for 8s\n"
		      "expect silence\nend\n");
	cr_expect_eq(snap->comms[0].members[0].state, CW_COMM_READY);
	snap = cw_snapshot_free(snap);
	(void)run(99, "scenario s\nranks 4\n" LATE "fault 3 at 0s on late init wedge\n"
		      "expect silence\nend\n");
	cr_expect_eq(snap->comms[0].members[0].state, CW_COMM_INIT);
}

Test(suite_graph, watcher_hears_of_each_trouble_and_no_consequence)
{
	hear(TWO_GROUPS "fault 1 at 9s on main block in lock\nfault 6 at 9s kill 9\n"
			"expect process_dead 6\nalso never_entered 1\nend\n");
	cr_assert(said.is_alert);
	cr_expect_eq(said.verdict_class, CW_CLASS_PROCESS_DEAD);
	cr_assert_not_null(said.also);
	cr_expect_eq(said.also->verdict_class, CW_CLASS_NEVER_ENTERED);
	cr_assert_eq(said.also->n_culprits, 1);
	cr_expect_eq(said.also->culprits[0], 1);
	cr_expect_gt(said.also->after_ns, said.after_ns);
	cr_expect_null(said.also->also);
}

Test(suite_graph, watcher_goes_on_whatever_is_expected)
{
	hear(TWO_GROUPS "fault 1 at 9s on main block in lock\nfault 6 at 9s kill 9\n"
			"expect process_dead 6\nend\n");
	cr_assert(said.is_alert);
	cr_expect_not_null(said.also);
}
