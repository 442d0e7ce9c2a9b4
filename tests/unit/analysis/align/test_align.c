/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/align/align.h"
#include "record/record_layout.h"
#include "tests/support/snapshot/snap_builder.h"

static struct sb *b;
static struct sb_comm *c;
static struct cw_snapshot *snap;
static struct cw_arena arena;
static struct alignment al;

static void setup(void)
{
	b = sb_new(5, 1);
	c = sb_comm(b, "world", 0, 5, 1, 20);
	for (uint32_t m = 0; m < 5; m++)
		c->members[m].has_window = true;
}

static void teardown(void)
{
	cw_arena_fini(&arena);
	snap = cw_snapshot_free(snap);
	sb_free(b);
}

TestSuite(align, .init = setup, .fini = teardown);

static void align(void)
{
	struct align_scratch scratch = { 0 };

	if (!snap)
		snap = sb_snapshot(b);
	cr_assert_eq(align_comm(snap, 0, &arena, &scratch, &al), 0);
	align_scratch_fini(&scratch);
}

Test(align, finds_equal_histories_equal)
{
	align();
	cr_expect_eq(al.seq, 0);
	cr_expect(!al.hashes.differs);
}

Test(align, compares_ranks_that_are_not_equally_far)
{
	c->members[1].entered = c->members[1].returned = 15;
	c->members[1].reached = c->members[1].completed = 15;
	align();
	cr_expect_eq(al.seq, 0);
	cr_expect(!al.hashes.differs);
}

Test(align, reports_the_first_difference_only)
{
	sb_odd(c, 2, 17)->count = 1;
	sb_odd(c, 2, 19)->count = 2;
	sb_odd(c, 3, 18)->count = 3;
	align();
	cr_expect_eq(al.seq, 17);
	cr_expect(al.is_proof);
	cr_assert_eq(al.n_sides, 2);
	cr_expect_eq(al.majority, 0);
	cr_expect_eq(al.sides[0].n_ranks, 4);
	cr_assert_eq(al.sides[1].n_ranks, 1);
	cr_expect_eq(al.sides[1].ranks[0], 2);
	cr_expect_eq(al.sides[1].op.count, 1);
}

Test(align, knows_no_majority_between_equal_sides)
{
	c->members[4].rank = CW_SNAP_NONE;
	sb_odd(c, 0, 18)->count = 1;
	sb_odd(c, 1, 18)->count = 1;
	align();
	cr_expect_eq(al.seq, 18);
	cr_expect_eq(al.majority, ALIGN_NO_SIDE);
	cr_expect_eq(al.n_compared, 4);
}

Test(align, lists_who_has_not_entered_as_a_side_without_op)
{
	sb_all_wait_but(c, 4, SB_S);
	sb_odd(c, 0, 21)->count = 1;
	align();
	cr_expect_eq(al.seq, 21);
	cr_assert_eq(al.n_sides, 3);
	cr_expect(!al.sides[2].has_op);
	cr_assert_eq(al.sides[2].n_ranks, 1);
	cr_expect_eq(al.sides[2].ranks[0], 4);
}

Test(align, sees_differing_histories_without_windows)
{
	for (uint32_t m = 0; m < 5; m++)
		c->members[m].has_window = false;
	sb_odd(c, 2, 17)->count = 1;
	align();
	cr_expect(al.hashes.differs);
	cr_expect_eq(al.hashes.differ_seq, 20);
}

/* Launches of a graph that the agent does not see: each later call has too low a number. */
Test(align, compares_nothing_of_a_member_whose_calls_are_not_all_seen)
{
	struct cw_snap_member *odd;

	sb_odd(c, 2, 17)->count = 1;
	snap = sb_snapshot(b);
	odd = &snap->comms[0].members[2];
	for (uint32_t m = 0; m < 5; m++)
		snap->comms[0].members[m].checkpoints[0] =
			(struct cw_checkpoint){ .coll_seq = 16, .hash = 4711 + (m == 2) };
	odd->known = 0;
	align();
	cr_expect_eq(al.seq, 0, "differs at %lu", (unsigned long)al.seq);
	cr_expect(!al.hashes.differs);
}

Test(align, compares_checkpoints_both_have)
{
	struct cw_snap_member *members;

	snap = sb_snapshot(b);
	members = snap->comms[0].members;
	for (uint32_t m = 0; m < 5; m++) {
		members[m].hash_seq = 200 + m;
		members[m].hash = m;
		members[m].checkpoints[0] = (struct cw_checkpoint){ 192, 7 };
		members[m].checkpoints[1] = (struct cw_checkpoint){ 128, 6 };
	}
	align();
	cr_expect(!al.hashes.differs);
	members[3].checkpoints[0].hash = 8;
	align();
	cr_expect(al.hashes.differs);
	cr_expect_eq(al.hashes.differ_seq, 192);
	cr_expect_eq(al.hashes.agreed_seq, 128);
	/* Only the newest hash needs to stand still. */
	members[3].known &= ~(unsigned)CW_KNOWN_HASH;
	align();
	cr_expect(al.hashes.differs);
	members[3].checkpoints[0] = (struct cw_checkpoint){ 0 };
	align();
	cr_expect(!al.hashes.differs);
}

Test(align, compares_the_hashes_after_last_calls)
{
	struct cw_checkpoint points[5][2];
	struct cw_snap_member *members;

	snap = sb_snapshot(b);
	members = snap->comms[0].members;
	for (uint32_t m = 0; m < 5; m++) {
		members[m].known &= ~(unsigned)CW_KNOWN_HASH;
		points[m][0] = (struct cw_checkpoint){ 18, 6 };
		points[m][1] = (struct cw_checkpoint){ 19, 7 };
		members[m].last_hashes = points[m];
		members[m].n_last_hashes = 2;
	}
	align();
	cr_expect(!al.hashes.differs);
	points[3][1].hash = 8;
	align();
	cr_expect(al.hashes.differs);
	cr_expect_eq(al.hashes.differ_seq, 19);
	cr_expect_eq(al.hashes.agreed_seq, 18);
}

/* Ops 18 and 19 of the member form a group, in this order of counts. */
static void make_group(uint32_t m, uint64_t first, uint64_t second)
{
	struct cw_snap_member *member = &snap->comms[0].members[m];

	for (uint32_t i = 0; i < member->n_window; i++) {
		struct cw_op *op = &member->window[i];

		if (op->coll_seq != 18 && op->coll_seq != 19)
			continue;
		op->flags |= CW_OPF_GROUPED;
		op->group_id = 3 + m;
		op->count = op->coll_seq == 18 ? first : second;
	}
	member->known &= ~(unsigned)CW_KNOWN_HASH;
}

Test(align, ignores_the_order_inside_a_group)
{
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 5; m++)
		make_group(m, m == 2 ? 5 : 6, m == 2 ? 6 : 5);
	align();
	cr_expect_eq(al.seq, 0);
}

Test(align, finds_a_difference_inside_a_group)
{
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 5; m++)
		make_group(m, 5, m == 2 ? 7 : 6);
	align();
	cr_expect_eq(al.seq, 19);
	/* A group waits at the first of its calls, wherever it is wrong. */
	cr_expect_eq(al.from_seq, 18);
	cr_expect(al.is_proof);
}

Test(align, takes_another_grouping_for_no_proof)
{
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 5; m++) {
		struct cw_snap_member *member = &snap->comms[0].members[m];

		if (m != 2) {
			make_group(m, 5, 6);
			continue;
		}
		member->known &= ~(unsigned)CW_KNOWN_HASH;
		for (uint32_t i = 0; i < member->n_window; i++)
			if (member->window[i].coll_seq == 18)
				member->window[i].count = 6;
			else if (member->window[i].coll_seq == 19)
				member->window[i].count = 5;
	}
	align();
	cr_expect_eq(al.seq, 18);
	cr_expect(!al.is_proof);
}

/* Others have 18 and 19 in a group: no grouping makes this 18 one of them. */
Test(align, takes_a_call_that_a_longer_group_lacks_for_a_proof)
{
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 5; m++) {
		struct cw_snap_member *member = &snap->comms[0].members[m];

		if (m != 2) {
			make_group(m, 5, 6);
			continue;
		}
		member->known &= ~(unsigned)CW_KNOWN_HASH;
		for (uint32_t i = 0; i < member->n_window; i++)
			if (member->window[i].coll_seq == 18)
				member->window[i].count = 7;
	}
	align();
	cr_expect_eq(al.seq, 18);
	cr_expect(al.is_proof);
	cr_assert_eq(al.n_sides, 2);
	cr_assert_eq(al.sides[1].n_ranks, 1);
	cr_expect_eq(al.sides[1].ranks[0], 2);
}

/*
 * The others have 18 and 19 in a group, while this rank has them one by one. Their histories differ
 * after 19; the wrong call is 20.
 */
static void group_otherwise_before_a_difference(uint64_t differ_seq)
{
	sb_odd(c, 2, 20)->count = 7;
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 5; m++) {
		struct cw_snap_member *member = &snap->comms[0].members[m];

		make_group(m, 5, 5);
		for (uint32_t i = 0; m == 2 && i < member->n_window; i++)
			member->window[i].flags &= ~(unsigned)CW_OPF_GROUPED;
		member->checkpoints[0] = (struct cw_checkpoint){ differ_seq, 8 + (m == 2) };
	}
	align();
}

Test(align, finds_the_call_behind_the_same_calls_grouped_otherwise)
{
	group_otherwise_before_a_difference(19);
	cr_expect_eq(al.seq, 20, "differs at %lu", (unsigned long)al.seq);
	cr_expect(al.knows_call);
	cr_expect(al.is_proof);
}

Test(align, explains_no_earlier_difference_by_another_grouping)
{
	group_otherwise_before_a_difference(17);
	cr_expect_not(al.knows_call);
	cr_expect_eq(al.seq, 17);
}

Test(align, leaves_ops_out_that_were_never_launched)
{
	snap = sb_snapshot(b);
	for (uint32_t i = 0; i < snap->comms[0].members[2].n_window; i++) {
		struct cw_op *op = &snap->comms[0].members[2].window[i];

		if (op->coll_seq == 18) {
			op->count = 77;
			op->result = 5; /* ncclInvalidUsage */
		}
		if (op->coll_seq == 17) {
			op->count = 78;
			op->flags |= CW_OPF_CAPTURED;
		}
	}
	align();
	cr_expect_eq(al.seq, 0);
}

Test(align, survives_windows_full_of_nonsense)
{
	/* Not a criterion of sense, only of memory: run it under the sanitizers. */
	uint64_t x = 1;

	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 5; m++)
		for (uint32_t i = 0; i < snap->comms[0].members[m].n_window; i++) {
			unsigned char *op = (unsigned char *)&snap->comms[0].members[m].window[i];

			for (size_t k = 0; k < sizeof(struct cw_op); k++) {
				x = x * UINT64_C(6364136223846793005) + 1;
				op[k] = (unsigned char)(x >> 56);
			}
		}
	align();
	cr_expect_leq(al.n_sides, 6);
}

/* A window of the last ops, and one from further back: the groups at the seam are cut. */
Test(align, compares_no_group_that_begins_behind_a_gap)
{
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 5; m++) {
		struct cw_snap_member *member = &snap->comms[0].members[m];

		make_group(m, 5, m == 2 ? 7 : 6);
		for (uint32_t i = 0; i < member->n_window; i++)
			if (member->window[i].coll_seq >= 18)
				member->window[i].op_index += 100;
	}
	align();
	cr_expect_eq(al.seq, 0);
}
