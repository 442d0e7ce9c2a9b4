/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that differ. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_mismatch, .init = verdict_setup, .fini = verdict_teardown);

struct field {
	const char *detail;
	unsigned kind; /* of the usual op */
	void (*change)(struct cw_op *op);
};

static void other_kind(struct cw_op *op)
{
	op->kind = CW_OP_REDUCE_SCATTER;
}

static void other_count(struct cw_op *op)
{
	op->count = 999;
	op->bytes = 3996;
}

static void other_dtype(struct cw_op *op)
{
	op->dtype = CW_DTYPE_INT32;
}

static void other_redop(struct cw_op *op)
{
	op->redop = CW_REDOP_MAX;
}

static void other_root(struct cw_op *op)
{
	op->root = 2;
}

static const struct field fields[] = {
	{ "kind", CW_OP_ALL_REDUCE, other_kind },   { "count", CW_OP_ALL_REDUCE, other_count },
	{ "dtype", CW_OP_ALL_REDUCE, other_dtype }, { "redop", CW_OP_ALL_REDUCE, other_redop },
	{ "root", CW_OP_BROADCAST, other_root },    { "root", CW_OP_REDUCE, other_root },
	{ "count", CW_OP_ALL_GATHER, other_count }, { "count", CW_OP_BROADCAST, other_count },
};

Test(verdict_mismatch, names_the_field_that_differs)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

		c->usual.kind = (uint8_t)fields[i].kind;
		if (fields[i].kind == CW_OP_BROADCAST || fields[i].kind == CW_OP_REDUCE)
			c->usual.root = 0;
		sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
		fields[i].change(sb_odd(c, 4, 42));
		expect(CW_CLASS_MISMATCH, fields[i].detail, "4", "0-3,5-7");
		cr_expect(v.is_proof);
		cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
		cw_verdict_fini(&v);
		snap = cw_snapshot_free(snap);
		sb_clear_comms(b);
	}
}

Test(verdict_mismatch, compares_bytes_where_nccl_does)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);
	struct cw_op *op;

	c->usual.kind = CW_OP_ALL_GATHER;
	op = sb_odd(c, 4, 41);
	op->dtype = CW_DTYPE_BF16;
	op->count = 2048;
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict_mismatch, names_all_sides_when_none_is_smaller)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	for (uint32_t m = 0; m < 4; m++)
		sb_odd(c, m, 42)->count = 7;
	expect(CW_CLASS_MISMATCH, "count", "0-7", "");
}

Test(verdict_mismatch, finds_a_mismatch_nobody_waits_for)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_odd(c, 4, 39)->redop = CW_REDOP_AVG;
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	expect(CW_CLASS_MISMATCH, "redop", "4", "");
	cr_expect_eq(v.coll_seq, 39);
	cr_expect(v.is_proof);
}

Test(verdict_mismatch, does_not_blame_a_mismatch_for_what_comes_after_it)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 45);

	/* All are beyond it: that some wait now is the next step, and comes and goes. */
	sb_odd(c, 4, 39)->redop = CW_REDOP_AVG;
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	sb_waits(c, 0, SB_S);
	sb_waits(c, 1, SB_S);
	expect(CW_CLASS_MISMATCH, "redop", "4", "");
	cr_expect_eq(v.waiting_since_ns, 0);
}

/*
 * Rank 4 called something else as #40; two calls later all have come, and #42 has not opened for so
 * long. Calls come every so often.
 */
static void waits_later(void (*change)(struct cw_op *op), int64_t for_ns, int64_t every_ns)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	change(sb_odd(c, 4, 40));
	c->every_ns = every_ns;
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	sb_all_wait_but(c, SB_MAX_RANKS, for_ns);
}

Test(verdict_mismatch, blames_displaced_data_for_a_later_call_that_does_not_open)
{
	waits_later(other_kind, 20 * SB_S, 0);
	expect(CW_CLASS_MISMATCH, "kind", "4", "0-3,5-7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.coll_seq, 40);
	cr_expect_eq(v.waiting_since_ns, SB_NOW - 20 * SB_S);
}

/* Calls of a communicator that has a rhythm: a call that lasts long beyond it is stuck. */
Test(verdict_mismatch, sees_by_the_rhythm_that_a_later_call_does_not_open)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	other_kind(sb_odd(c, 4, 40));
	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].has_window = true;
		c->members[m].interval_ns = SB_S / 10;
	}
	sb_all_wait_but(c, SB_MAX_RANKS, 5 * SB_S / 2);
	expect(CW_CLASS_MISMATCH, "kind", "4", "0-3,5-7");
	cr_expect_eq(v.waiting_since_ns, SB_NOW - 5 * SB_S / 2);
}

Test(verdict_mismatch, does_not_take_the_rhythm_itself_for_a_wait)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	other_kind(sb_odd(c, 4, 40));
	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].has_window = true;
		c->members[m].interval_ns = m == 7 ? 3 * SB_S / 5 : SB_S / 10;
	}
	sb_all_wait_but(c, SB_MAX_RANKS, 5 * SB_S / 2);
	expect(CW_CLASS_MISMATCH, "kind", "4", "");
	cr_expect_eq(v.waiting_since_ns, 0);
}

/* In a job that goes on with wrong data all are in some call at most looks. */
Test(verdict_mismatch, blames_displaced_data_for_no_call_that_has_only_just_begun)
{
	waits_later(other_kind, 5 * SB_S, 0);
	expect(CW_CLASS_MISMATCH, "kind", "4", "");
	cr_expect_eq(v.waiting_since_ns, 0);
}

/* Minutes of calls that went through have shown that nothing of it was left. */
Test(verdict_mismatch, blames_what_differed_long_ago_for_no_hang_of_today)
{
	waits_later(other_kind, 20 * SB_S, 40 * SB_S);
	judge();
	cr_expect_neq(v.waiting_since_ns, 0);
	cr_expect_eq(v.verdict_class, CW_CLASS_IN_COLLECTIVE);
}

/* The same bytes went the same way: nothing remains that could hold up a rank. */
Test(verdict_mismatch, blames_wrong_data_of_the_same_size_for_no_later_hang)
{
	waits_later(other_redop, 20 * SB_S, 0);
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_IN_COLLECTIVE);
}

Test(verdict_mismatch, asks_for_windows_when_histories_differ)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_odd(c, 4, 39)->count = 5;
	expect(CW_CLASS_MISMATCH, "unknown_call", "4", "");
	cr_expect(v.wants_windows);
	cr_assert_eq(v.n_wanted, 1);
	cr_expect_eq(v.wanted[0], 0);
}

Test(verdict_mismatch, asks_those_who_have_gone_on_what_they_called)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 4, 1, 42);

	/* A broadcast of another root: two are stuck there or dead, two are long past it. */
	for (uint32_t m = 0; m < 4; m++)
		sb_odd(c, m, 41)->kind = CW_OP_BROADCAST;
	c->members[2].odd[0].root = 2;
	c->members[2].entered = c->members[2].returned = 41;
	c->members[3].entered = c->members[3].returned = 41;
	expect(CW_CLASS_MISMATCH, "root", "2-3", "");
	cr_expect_eq(v.waiting_since_ns, 0);
	cr_assert_eq(v.n_wanted, 1);
	cr_expect_eq(v.wanted[0], 0);
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	c->members[0].has_window = c->members[1].has_window = true;
	expect(CW_CLASS_MISMATCH, "root", "2", "");
	cr_expect_eq(v.n_wanted, 0);
}

/* A loop of three different ops. */
static void make_loop(struct sb_comm *c)
{
	for (uint32_t m = 0; m < c->nranks; m++) {
		c->members[m].has_window = true;
		for (uint64_t s = 34; s <= 44; s++) {
			if (s % 3 == 0)
				continue;
			if (c->members[m].n_odd == SB_MAX_ODD)
				break;
			sb_odd(c, m, s)->count = 1000 * (s % 3);
		}
	}
}

Test(verdict_mismatch, recognises_a_skipped_call)
{
	/* Rank 4 skipped #42 (usual) and stands in what for the others is #43 (1000). */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	make_loop(c);
	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	for (uint32_t i = 0; i < c->members[4].n_odd; i++)
		if (c->members[4].odd[i].coll_seq == 43)
			c->members[4].odd[i].coll_seq = 42;
	expect(CW_CLASS_MISMATCH, "missing", "4", "0-3,5-7");
}

Test(verdict_mismatch, recognises_an_extra_call)
{
	/* Rank 4 put a broadcast before #42, so that its #43 is #42 for all others. */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	make_loop(c);
	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	for (uint32_t i = 0; i < c->members[4].n_odd; i++)
		if (c->members[4].odd[i].coll_seq >= 43)
			c->members[4].odd[i].coll_seq = 1;
	c->members[4].odd[0] = c->usual;
	c->members[4].odd[0].coll_seq = 42;
	c->members[4].odd[0].kind = CW_OP_BROADCAST;
	c->members[4].odd[0].root = 0;
	c->members[4].entered = c->members[4].returned = 43;
	expect(CW_CLASS_MISMATCH, "extra", "4", "0-3,5-7");
}

/* 0 to 7 split into halves, but 3 went with the upper ones and makes the lower ones' calls there.
 */
static void wrong_colour(uint32_t n_lower)
{
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 1);
	struct sb_comm *lower = sb_comm(b, "lower", 0, n_lower, 1, 41);
	struct sb_comm *upper = sb_comm(b, "upper", 3, 5, 1, 41);

	lower->parent_id = upper->parent_id = world->id;
	lower->split_ordinal = upper->split_ordinal = 2;
	sb_all_wait_but(upper, SB_MAX_RANKS, 2 * SB_S);
	sb_odd(upper, 0, 42)->count = 999;
	for (uint32_t m = 0; m < 5; m++)
		upper->members[m].has_window = true;
}

Test(verdict_mismatch, asks_for_the_colour_where_the_group_is_one_too_large)
{
	wrong_colour(3);
	expect(CW_CLASS_MISMATCH, "count", "3", "4-7");
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said), "5 members"), "%s",
			   said_text(&v.culprits[0].said));
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said), "give it 4"), "%s",
			   said_text(&v.culprits[0].said));
}

Test(verdict_mismatch, asks_for_no_colour_where_a_group_is_not_seen)
{
	wrong_colour(2);
	expect(CW_CLASS_MISMATCH, "count", "3", "4-7");
	cr_expect_null(strstr(said_text(&v.culprits[0].said), "colour"), "%s",
		       said_text(&v.culprits[0].said));
}
