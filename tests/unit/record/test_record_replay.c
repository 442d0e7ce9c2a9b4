/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of CUDA graphs as a reader of the record sees them. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

static struct cw_test_record *rec;
static struct cw_record *reader;

/* Two equal all_reduces, a send, a group of two, an all_gather: six ops, five collectives. */
static const struct cw_rec_template runs[] = {
	{ .kind = CW_OP_ALL_REDUCE,
	  .dtype = CW_DTYPE_BF16,
	  .count = 64,
	  .root_or_peer = -1,
	  .repeat = 2 },
	{ .kind = CW_OP_SEND, .dtype = CW_DTYPE_FP32, .count = 3, .root_or_peer = 5, .repeat = 1 },
	{ .kind = CW_OP_REDUCE,
	  .dtype = CW_DTYPE_FP32,
	  .count = 7,
	  .root_or_peer = 2,
	  .repeat = 1,
	  .flags = CW_REC_TEMPLATE_GROUPED },
	{ .kind = CW_OP_BROADCAST,
	  .dtype = CW_DTYPE_FP32,
	  .count = 7,
	  .root_or_peer = 1,
	  .repeat = 1,
	  .flags = CW_REC_TEMPLATE_GROUPED | CW_REC_TEMPLATE_GROUP_END },
	{ .kind = CW_OP_ALL_GATHER,
	  .dtype = CW_DTYPE_FP32,
	  .count = 9,
	  .root_or_peer = -1,
	  .repeat = 1 },
};

static void setup(void)
{
	rec = cw_test_record_new();
	cw_test_record_comm(rec, 0x1111, 8, 3);
	cw_test_record_graph(rec, 0, runs, 5);
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);
}

static void teardown(void)
{
	reader = cw_record_close(reader);
	rec = cw_test_record_free(rec);
}

TestSuite(record_replay, .init = setup, .fini = teardown);

static const struct cw_record_comm *comm(void)
{
	size_t n;

	cr_assert_eq(cw_record_refresh(reader), 0);
	return cw_record_comms(reader, &n);
}

static struct cw_record_state state(void)
{
	struct cw_record_state s;

	cr_assert_eq(cw_record_state(reader, comm(), &s), 0);
	return s;
}

static uint64_t launch(void)
{
	uint64_t op = cw_test_record_launch(rec, 0);

	cw_test_record_return(rec, 0, op, 0);
	return op;
}

/* The first launch is over, the second under way; so many ops of it. */
static void stand_at(uint64_t reached_ops, uint64_t completed_ops)
{
	uint64_t first = launch(), second = launch();

	cw_test_record_progress(rec, 0, second, first);
	cw_test_record_set_slot(rec, CW_REC_PROGRESS_SLOTS - 1, reached_ops, completed_ops);
}

Test(record_replay, oldest_op_not_completed_is_pending)
{
	struct cw_record_state s;

	stand_at(2, 1);
	s = state();
	cr_assert(s.has_pending && s.completed_known && s.reached_known);
	cr_expect_eq(s.coll_completed, 6, "five, and one of the second launch");
	cr_expect_eq(s.coll_reached, 7);
	cr_expect_eq(s.pending.kind, CW_OP_ALL_REDUCE);
	cr_expect_eq(s.pending.dtype, CW_DTYPE_BF16);
	cr_expect_eq(s.pending.count, 64);
	cr_expect_eq(s.pending.coll_seq, 7);
	cr_expect_eq(s.pending.progress, CW_PROGRESS_REACHED);
	cr_expect_eq(s.last.kind, CW_OP_ALL_GATHER);
	cr_expect_eq(s.last.coll_seq, 10);
}

Test(record_replay, an_op_that_the_graph_has_not_reached_is_behind)
{
	struct cw_record_state s;

	stand_at(3, 3); /* both all_reduces and the send; something else in the graph runs now */
	s = state();
	cr_expect_eq(s.coll_completed, 7);
	cr_expect_eq(s.coll_reached, 7);
	cr_expect_eq(s.pending.kind, CW_OP_REDUCE);
	cr_expect_eq(s.pending.root, 2);
	cr_expect_eq(s.pending.coll_seq, 8);
	cr_expect_eq(s.pending.progress, CW_PROGRESS_ENQUEUED);
	cr_expect(s.pending.flags & CW_OPF_GROUPED);
}

Test(record_replay, sends_are_no_collectives)
{
	struct cw_record_state s;

	stand_at(3, 2);
	s = state();
	cr_expect_eq(s.pending.kind, CW_OP_SEND);
	cr_expect_eq(s.pending.peer, 5);
	cr_expect_eq(s.pending.coll_seq, 0);
	cr_expect_eq(s.coll_completed, 7);
}

/* The graph's work on other communicators, or for itself, keeps no rank here waiting. */
Test(record_replay, a_graph_that_is_done_with_the_comm_leaves_nothing_pending)
{
	struct cw_record_state s;

	stand_at(6, 6);
	s = state();
	cr_expect_not(s.has_pending);
	cr_expect_eq(s.pending_count, 0);
	cr_expect(s.completed_known && s.reached_known);
	cr_expect_eq(s.coll_completed, 10);
	cr_expect_eq(s.coll_reached, 10);
	(void)cw_test_record_collective(rec, 0, CW_OP_BROADCAST, 16);
	s = state();
	cr_assert(s.has_pending, "what comes behind it is");
	cr_expect_eq(s.pending.kind, CW_OP_BROADCAST);
	cr_expect_eq(s.pending.coll_seq, 11);
	cr_expect_eq(s.pending_count, 1);
	cr_expect_eq(s.coll_completed, 10);
}

/* The graph in the record may differ from the launched one. */
Test(record_replay, a_graph_that_has_changed_since_is_pending)
{
	struct cw_record_state s;

	stand_at(6, 6);
	rec->replays[0].colls = 4;
	s = state();
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.kind, CW_OP_GRAPH_LAUNCH);
}

Test(record_replay, a_launch_behind_other_work_has_reached_nothing)
{
	uint64_t first = launch();
	struct cw_record_state s;

	(void)launch();
	cw_test_record_progress(rec, 0, first, first);
	cw_test_record_set_slot(rec, CW_REC_PROGRESS_SLOTS - 1, 6, 6); /* the first one's */
	s = state();
	cr_expect_eq(s.coll_completed, 5);
	cr_expect_eq(s.coll_reached, 5);
	cr_expect_eq(s.pending.coll_seq, 6);
	cr_expect_eq(s.pending.progress, CW_PROGRESS_ENQUEUED);
}

Test(record_replay, completed_launches_leave_nothing_pending)
{
	uint64_t op;
	struct cw_record_state s;

	(void)launch();
	op = launch();
	cw_test_record_progress(rec, 0, op, op);
	s = state();
	cr_expect_not(s.has_pending);
	cr_expect_eq(s.coll_completed, 10);
}

Test(record_replay, overlapping_replays_are_unknown)
{
	struct cw_record_state s;

	rec->replays[0].flags = CW_REC_REPLAY_MIXED;
	stand_at(2, 1);
	s = state();
	cr_expect_not(s.completed_known);
	cr_expect_eq(s.pending.kind, CW_OP_GRAPH_LAUNCH);
	cr_expect_eq(s.pending.coll_seq, 6, "the first one it may be in");
}

Test(record_replay, an_entry_of_another_graph_says_nothing)
{
	struct cw_record_state s;

	stand_at(2, 1);
	rec->replays[0].generation = 2;
	s = state();
	cr_expect_not(s.completed_known);
	cr_expect_eq(s.pending.kind, CW_OP_GRAPH_LAUNCH);
}

Test(record_replay, windows_show_the_ops_of_launches)
{
	struct cw_record_op ops[32];
	uint64_t lost;
	size_t n;

	stand_at(2, 1);
	cr_assert_eq(cw_record_window(reader, comm(), ops, 32, &n, &lost), 0);
	cr_assert_eq(n, 12);
	cr_expect_eq(lost, 0);
	cr_expect_eq(ops[0].coll_seq, 1);
	cr_expect_eq(ops[2].kind, CW_OP_SEND);
	cr_expect_eq(ops[5].progress, CW_PROGRESS_COMPLETED);
	cr_expect_eq(ops[7].progress, CW_PROGRESS_REACHED);
	cr_expect_eq(ops[11].coll_seq, 10);
	cr_expect_eq(ops[9].group_id, ops[10].group_id);
	cr_expect_neq(ops[9].group_id, ops[3].group_id);
	/* Only the newest. */
	cr_assert_eq(cw_record_window(reader, comm(), ops, 7, &n, &lost), 0);
	cr_assert_eq(n, 7);
	cr_expect_eq(ops[0].kind, CW_OP_ALL_GATHER);
	cr_expect_eq(ops[0].coll_seq, 5);
	cr_expect_eq(ops[6].coll_seq, 10);
}

/* A chain that leads in circles or nowhere is a launch of unknown contents, and ends. */
Test(record_replay, hostile_templates_are_not_believed)
{
	struct cw_record_op ops[32];
	uint64_t lost;
	size_t n;

	stand_at(2, 1);
	rec->templates[4].next_plus_1 = 1;
	rec->templates[1].repeat = 0;
	cr_expect_not(state().completed_known);
	rec->templates[1].repeat = UINT32_MAX;
	cr_expect_not(state().completed_known);
	rec->templates[1].repeat = 1;
	rec->templates[1].next_plus_1 = CW_REC_TEMPLATES + 1;
	cr_expect_not(state().completed_known);
	cr_assert_eq(cw_record_window(reader, comm(), ops, 32, &n, &lost), 0);
	cr_expect_leq(n, 32);
	rec->replays[0].ops = UINT32_MAX;
	rec->replays[0].colls = 5;
	cr_assert_eq(cw_record_window(reader, comm(), ops, 32, &n, &lost), 0);
	cr_expect_leq(n, 32);
}

/* Number of read system calls of this process. */
static unsigned long reads_so_far(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long n = 0;

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "rchar: %*u wchar: %*u syscr: %lu", &n), 1);
	(void)fclose(f);
	return n;
}

static void expect_few_reads(void)
{
	unsigned long before;

	for (unsigned i = 0; i < CW_REC_REPLAYS; i++)
		rec->replays[i] = (struct cw_rec_replay){ .generation = 1, .comm_plus_1 = 1 };
	rec->header->has |= CW_REC_HAS_REPLAYS;
	cr_assert_eq(cw_record_refresh(reader), 0);
	before = reads_so_far();
	cr_assert_eq(cw_record_refresh(reader), 0);
	cr_expect_lt(reads_so_far() - before, 60u);
}

Test(record_replay, reads_a_full_table_with_few_calls)
{
	expect_few_reads();
}
