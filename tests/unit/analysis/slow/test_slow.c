/* SPDX-License-Identifier: Apache-2.0 */
/* Late ranks: a job of four ranks that all enter an all_reduce each 200 ms. */
#include "analysis/slow/slow.h"

#include <criterion/criterion.h>

#include "model/verdict_types.h"
#include "tests/support/snapshot/snap_builder.h"

#define RANKS 4u
#define OPS 16u
#define MS (SB_S / 1000)
#define STEP_NS (200 * MS)

static struct cw_snapshot *snap;
static struct cw_slow_list slow;

/* late_ns[m]: how much after the others rank m enters each; they go on once all have come. */
static void make_job(uint32_t n_nodes, const int64_t late_ns[RANKS])
{
	struct cw_snap_comm comm = { .id = 7, .nranks = RANKS, .name = "world" };
	uint32_t index;

	snap = cw_snapshot_new();
	cr_assert(snap);
	snap->now_ns = SB_NOW;
	for (uint32_t i = 0; i < n_nodes; i++)
		cr_assert_eq(cw_snapshot_add_node(snap, i ? "node-b" : "node-a", &index), 0);
	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t m = 0; m < RANKS; m++) {
		struct cw_snap_rank rank = { .rank = (int32_t)m, .node = m * n_nodes / RANKS };
		struct cw_op window[OPS] = { 0 };
		struct cw_snap_member member = { .window = window, .n_window = OPS };

		for (uint32_t i = 0; i < OPS; i++)
			window[i] = (struct cw_op){ .kind = CW_OP_ALL_REDUCE,
						    .flags = CW_OPF_RETURNED,
						    .coll_seq = i + 1,
						    .op_index = i + 1,
						    .enter_ns = (i + 1) * STEP_NS + late_ns[m] };
		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &member.rank), 0);
		cr_assert_eq(cw_snapshot_set_member(snap, index, m, &member), 0);
	}
}

static void shift_op(uint32_t member, uint32_t op, int64_t by_ns)
{
	snap->comms[0].members[member].window[op].enter_ns += by_ns;
}

static void find(void)
{
	cr_assert_eq(cw_slow_find(snap, &slow), 0);
}

static void fini(void)
{
	snap = cw_snapshot_free(snap);
}

TestSuite(slow, .fini = fini);

Test(slow, names_the_rank_that_the_others_wait_for)
{
	make_job(1, (int64_t[]){ 0, 0, 100 * MS, MS });
	find();
	cr_assert_eq(slow.n, 1);
	cr_expect_eq(snap->ranks[slow.v[0].rank].rank, 2);
	/* No record shows the time after the newest call, so we count no wait for it. */
	cr_expect_eq(slow.v[0].n_ops, OPS);
	cr_expect_eq(slow.v[0].n_late, OPS - 1);
	cr_expect_eq(slow.v[0].percent, 49);
	cr_expect(slow.v[0].late_ns >= 99 * MS && slow.v[0].late_ns <= 100 * MS);
	cr_expect_eq(slow.v[0].confidence, CW_CONFIDENCE_LIKELY);
}

Test(slow, is_less_sure_where_the_clock_may_be_what_differs)
{
	make_job(2, (int64_t[]){ 0, 0, 100 * MS, 0 });
	find();
	cr_assert_eq(slow.n, 1);
	cr_expect_eq(slow.v[0].confidence, CW_CONFIDENCE_LIKELY);
	snap->ranks[3].node = 0;
	find();
	cr_assert_eq(slow.n, 1);
	cr_expect_eq(slow.v[0].confidence, CW_CONFIDENCE_POSSIBLE);
}

/* Hosts' times may be off by some tens of milliseconds: each of these has another clock. */
Test(slow, takes_a_clock_that_is_behind_for_no_delay)
{
	make_job(RANKS, (int64_t[]){ 0, 0, 40 * MS, 0 });
	find();
	cr_expect_eq(slow.n, 0);
	for (uint32_t m = 0; m < RANKS; m++)
		snap->ranks[m].node = 0;
	find();
	cr_expect_eq(slow.n, 1);
}

Test(slow, survives_times_that_nobody_can_have_measured)
{
	make_job(2, (int64_t[]){ 0, 0, 100 * MS, 0 });
	for (uint32_t i = 0; i < OPS; i++) {
		snap->comms[0].members[0].window[i].enter_ns = INT64_MIN + i;
		snap->comms[0].members[1].window[i].enter_ns = INT64_MAX - i;
	}
	find();
	cr_expect_leq(slow.n, RANKS);
}

Test(slow, leaves_hosts_alone_that_are_behind_and_hold_nobody_up)
{
	/* The others are two calls ahead of it all the time. */
	make_job(1, (int64_t[]){ 0, 0, 2 * STEP_NS + 50 * MS, 0 });
	find();
	cr_expect_eq(slow.n, 0);
}

/* They enter when their device has room for another call, independent of the arrival of others. */
Test(slow, leaves_hosts_alone_that_wait_for_their_own_devices)
{
	make_job(1, (int64_t[]){ 0, 0, 100 * MS, 0 });
	for (uint32_t m = 0; m < RANKS; m++)
		for (uint32_t i = 0; i < OPS; i++) {
			struct cw_op *op = &snap->comms[0].members[m].window[i];

			op->return_ns = op->enter_ns + STEP_NS - MS;
		}
	find();
	cr_expect_eq(slow.n, 0);
}

Test(slow, blames_nobody_where_they_are_late_by_turns)
{
	make_job(1, (int64_t[]){ 0, 0, 0, 0 });
	for (uint32_t i = 0; i < OPS; i++)
		shift_op(i % RANKS, i, 100 * MS);
	find();
	cr_expect_eq(slow.n, 0);
}

/*
 * Another comm of theirs, called 20 ms after each call of the first. By turns rank 0 and rank `odd`
 * come 80 ms late to both; where rank `odd` does, the others have waited for it in the first, as
 * most do not for rank 0, and come with it.
 */
static void add_meeting(uint32_t odd)
{
	struct cw_snap_comm comm = { .id = 8, .nranks = RANKS, .name = "meeting" };
	uint32_t index;

	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t m = 0; m < RANKS; m++) {
		struct cw_op window[OPS] = { 0 };
		struct cw_snap_member member = { .rank = m, .window = window, .n_window = OPS };

		for (uint32_t i = 0; i < OPS; i++) {
			bool is_odd = i % 2, is_late = m == (is_odd ? odd : 0);

			window[i] = snap->comms[0].members[m].window[i];
			window[i].enter_ns += (is_odd || is_late ? 100 : 20) * MS;
			if (is_late)
				shift_op(m, i, 80 * MS);
		}
		cr_assert_eq(cw_snapshot_set_member(snap, index, m, &member), 0);
	}
}

Test(slow, knows_turns_that_are_taken_in_another_comm_of_the_same_members)
{
	make_job(1, (int64_t[]){ 0, 0, 0, 0 });
	add_meeting(1);
	find();
	cr_expect_eq(slow.n, 0);
	snap = cw_snapshot_free(snap);
	make_job(1, (int64_t[]){ 0, 0, 0, 0 });
	add_meeting(0);
	find();
	cr_assert_eq(slow.n, 1);
	cr_expect_eq(snap->ranks[slow.v[0].rank].rank, 0);
}

Test(slow, leaves_alone_what_costs_next_to_nothing)
{
	make_job(1, (int64_t[]){ 0, 0, 15 * MS, 0 });
	find();
	cr_expect_eq(slow.n, 0);
}

Test(slow, knows_no_usual_time_where_half_of_them_are_late)
{
	make_job(1, (int64_t[]){ 0, 0, 100 * MS, 100 * MS });
	find();
	cr_expect_eq(slow.n, 0);
}

Test(slow, says_nothing_without_all_windows)
{
	make_job(1, (int64_t[]){ 0, 0, 100 * MS, 0 });
	snap->comms[0].members[1].window = NULL;
	snap->comms[0].members[1].n_window = 0;
	find();
	cr_expect_eq(slow.n, 0);
}
