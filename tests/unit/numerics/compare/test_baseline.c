/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs of one rank, on rows that the tests write down. */
#include "numerics/compare/baseline.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_ROWS 20000u
#define N 400u /* elements of each op */

struct run {
	struct cw_baseline_row rows[MAX_ROWS];
	struct cw_baseline_comm comms[3];
	char *sites[3];
	struct cw_baseline_run run;
	uint32_t seqs[3];
};

static struct run a, b;
static struct cw_baseline_options options;
static struct cw_baseline_said said;
static char forward[] = "train.py:10 in forward", backward[] = "train.py:88 in backward",
	    extra[] = "debug.py:3 in log";

static void init(struct run *r, uint64_t id)
{
	memset(r, 0, sizeof(*r));
	for (uint32_t i = 0; i < 3; i++)
		r->comms[i] = (struct cw_baseline_comm){ .id = id + i, .nranks = 4 };
	strcpy(r->comms[0].name, "world");
	strcpy(r->comms[1].name, "dp");
	r->sites[0] = forward;
	r->sites[1] = backward;
	r->sites[2] = extra;
	r->run = (struct cw_baseline_run){
		.rows = r->rows, .comms = r->comms, .n_comms = 3, .sites = r->sites, .n_sites = 3
	};
}

static void setup(void)
{
	init(&a, 100);
	init(&b, 900);
	cw_baseline_options_init(&options);
}

TestSuite(baseline, .init = setup);

static void set(struct cw_baseline_row *row, enum cw_baseline_side side, double value)
{
	row->unit |= side == CW_BASELINE_IN ? CW_BASELINE_HAS_IN : CW_BASELINE_HAS_OUT;
	cw_baseline_row_set_value(row, side, CW_BASELINE_ABSMAX, fabs(value));
	cw_baseline_row_set_value(row, side, CW_BASELINE_MEAN, value);
	cw_baseline_row_set_value(row, side, CW_BASELINE_L2, fabs(value) * sqrt(N));
}

/* All elements of the input are value, and all elements of the output four times that. */
static struct cw_baseline_row *op(struct run *r, unsigned comm, unsigned kind, unsigned site,
				  double value)
{
	struct cw_baseline_row *row = &r->rows[r->run.n_rows++];

	*row = (struct cw_baseline_row){ .unit = CW_BASELINE_UNIT_ROW,
					 .kind = (uint8_t)kind,
					 .dtype = CW_DTYPE_FP32,
					 .redop = CW_REDOP_SUM,
					 .seq = ++r->seqs[comm],
					 .comm = (uint16_t)comm,
					 .site = (uint16_t)site,
					 .root_or_peer = -1 };
	cw_baseline_row_set_count(row, N);
	set(row, CW_BASELINE_IN, value);
	set(row, CW_BASELINE_OUT, 4 * value);
	return row;
}

/* A value that no other op has. */
static double drawn(unsigned step, unsigned i)
{
	return 0.25 + fmod((step * 10 + i) * 0.6180339887498949, 1);
}

/* Three calls, the same in each step. */
static void train(struct run *r, unsigned from, unsigned to, bool marks)
{
	for (unsigned s = from; s < to; s++) {
		uint32_t first = r->run.n_rows;

		op(r, 0, CW_OP_ALL_GATHER, 1, drawn(s, 0));
		op(r, 1, CW_OP_ALL_REDUCE, 2, drawn(s, 1));
		op(r, 0, CW_OP_ALL_REDUCE, 2, drawn(s, 2));
		for (uint32_t i = first; marks && i < r->run.n_rows; i++)
			r->rows[i].step_plus_1 = s + 1;
	}
}

static void compare(void)
{
	cr_assert_eq(cw_baseline_compare(&a.run, &b.run, &options, &said), 0);
}

/* Takes a row out, as if it had been lost on the way: the others keep their numbers. */
static void lose(struct run *r, uint32_t row)
{
	memmove(&r->rows[row], &r->rows[row + 1], (r->run.n_rows - row - 1) * sizeof(*r->rows));
	r->run.n_rows--;
}

Test(baseline, keeps_values_to_a_trillionth)
{
	static const double values[] = {
		0, 1, -0.1, 65504, 1e-310, 1.7976931348623157e308, -3e-45
	};
	struct cw_baseline_row row = { 0 };

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		double v = values[i], back;

		cw_baseline_row_set_value(&row, CW_BASELINE_OUT, CW_BASELINE_MEAN, v);
		back = cw_baseline_row_value(&row, CW_BASELINE_OUT, CW_BASELINE_MEAN);
		cr_expect(fabs(back - v) <= fabs(v) * 0x1p-36 || fabs(v) < 1e-300, "%g is %g", v,
			  back);
		cr_expect(isfinite(back), "%g", back);
	}
	cw_baseline_row_set_value(&row, CW_BASELINE_IN, CW_BASELINE_L2, NAN);
	cr_expect(isnan(cw_baseline_row_value(&row, CW_BASELINE_IN, CW_BASELINE_L2)));
	cw_baseline_row_set_count(&row, CW_BASELINE_COUNT_MAX);
	cr_expect_eq(cw_baseline_row_count(&row), CW_BASELINE_COUNT_MAX);
}

Test(baseline, finds_a_run_equal_to_itself)
{
	train(&a, 0, 50, false);
	train(&b, 0, 50, false);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(said.n_paired, 150);
	cr_expect_eq(said.n_checked, 150);
	cr_expect_eq(said.way, CW_BASELINE_BY_CALL);
}

Test(baseline, allows_what_rounding_explains_and_no_more)
{
	train(&a, 0, 5, false);
	train(&b, 0, 5, false);
	set(&b.rows[7], CW_BASELINE_IN, drawn(2, 1) * (1 + 1.2e-6));
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	set(&b.rows[7], CW_BASELINE_IN, drawn(2, 1) * (1 + 1.5e-6));
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_TENSOR_STATS);
	cr_expect_eq(said.first.row_a, 7);
	cr_expect_eq(said.first.side, CW_BASELINE_IN);
	cr_expect_eq(said.first.value, CW_BASELINE_ABSMAX);
	cr_expect_eq(said.n_tensor_stats, 1);
	options.of[CW_DTYPE_FP32].atol = 1e-3;
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
}

/* Its magnitude is that of the elements, which cancel. */
Test(baseline, holds_a_mean_against_the_size_of_elements)
{
	train(&a, 0, 5, false);
	train(&b, 0, 5, false);
	cw_baseline_row_set_value(&a.rows[4], CW_BASELINE_IN, CW_BASELINE_MEAN, 1e-9);
	cw_baseline_row_set_value(&b.rows[4], CW_BASELINE_IN, CW_BASELINE_MEAN, -2e-9);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cw_baseline_row_set_value(&b.rows[4], CW_BASELINE_IN, CW_BASELINE_MEAN, 1e-4);
	compare();
	cr_expect_eq(said.first.value, CW_BASELINE_MEAN);
}

/* A summary counts the whole buffer, NCCL one rank's part. */
Test(baseline, knows_how_many_elements_a_mean_is_of)
{
	struct cw_baseline_difference d;
	struct cw_baseline_row *x = op(&a, 0, CW_OP_ALL_GATHER, 1, 1);
	struct cw_baseline_row *y = op(&b, 0, CW_OP_ALL_GATHER, 1, 1);

	/* Out of 4 N elements only a quarter is not zero. */
	cw_baseline_row_set_value(x, CW_BASELINE_OUT, CW_BASELINE_MEAN, 1);
	cw_baseline_row_set_value(y, CW_BASELINE_OUT, CW_BASELINE_MEAN, 1 + 3e-6);
	cr_expect(!cw_baseline_close(x, y, 4, &options, &d));
	cr_expect_float_eq(d.allowed, 1.3e-6 * 4 / 2, 1e-9);
}

Test(baseline, counts_nonfinite_numbers)
{
	train(&a, 0, 5, false);
	train(&b, 0, 5, false);
	b.rows[8].nonfinite[CW_BASELINE_OUT] = 3;
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_NONFINITE);
	cr_expect_eq(said.first.side, CW_BASELINE_OUT);
	cr_expect_eq(said.first.b, 3);
}

Test(baseline, compares_what_both_have_looked_at_only)
{
	train(&a, 0, 5, false);
	train(&b, 0, 5, false);
	set(&b.rows[3], CW_BASELINE_IN, 77);
	b.rows[3].unit = CW_BASELINE_UNIT_ROW | CW_BASELINE_HAS_OUT;
	a.rows[6].unit = CW_BASELINE_UNIT_ROW;
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(said.n_paired, 15);
	cr_expect_eq(said.n_checked, 14);
}

Test(baseline, names_an_op_of_another_type)
{
	train(&a, 0, 20, false);
	train(&b, 0, 20, false);
	b.rows[31].dtype = CW_DTYPE_BF16;
	set(&b.rows[40], CW_BASELINE_IN, 77);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_DTYPE);
	cr_expect_eq(said.first.row_a, 31);
	cr_expect_eq(said.first.row_b, 31);
	cr_expect_eq(said.n_called_otherwise, 1);
	cr_expect_eq(said.n_tensor_stats, 1);
	cr_expect_eq(said.n_missing + said.n_extra, 0);
}

Test(baseline, names_an_op_more_and_goes_on_behind_it)
{
	train(&a, 0, 20, false);
	train(&b, 0, 10, false);
	op(&b, 0, CW_OP_ALL_REDUCE, 3, 5);
	train(&b, 10, 20, false);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EXTRA);
	cr_expect_eq(said.first.row_b, 30);
	cr_expect_eq(said.first.row_a, CW_BASELINE_NONE);
	cr_expect_eq(said.n_extra, 1);
	cr_expect_eq(said.n_checked, 60);
	cr_expect_eq(said.n_tensor_stats, 0);
}

Test(baseline, names_an_op_that_is_missing)
{
	train(&a, 0, 20, false);
	train(&b, 0, 20, false);
	lose(&b, 33);
	for (uint32_t i = 33; i < b.run.n_rows; i++)
		b.rows[i].seq -= b.rows[i].comm == 0;
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_MISSING);
	cr_expect_eq(said.first.row_a, 33);
	cr_expect_eq(said.n_missing, 1);
	cr_expect_eq(said.n_checked, 59);
}

Test(baseline, does_not_take_an_op_that_was_lost_for_one_that_is_missing)
{
	train(&a, 0, 20, false);
	train(&b, 0, 20, false);
	lose(&b, 34);
	lose(&a, 12);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(said.n_unrecorded_a, 1);
	cr_expect_eq(said.n_unrecorded_b, 1);
	cr_expect_eq(said.n_checked, 58);
}

/* A flight record in a file holds the last calls. */
Test(baseline, compares_the_end_of_a_run)
{
	train(&a, 0, 100, false);
	train(&b, 0, 100, false);
	for (unsigned i = 0; i < 270; i++)
		lose(&b, 0);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(said.n_checked, 30);
	cr_expect_eq(said.n_unrecorded_b, 270);
	cr_expect_eq(said.n_missing, 0);
}

Test(baseline, leaves_a_warm_up_out_by_the_numbers)
{
	train(&a, 0, 100, false);
	train(&b, 7, 100, false);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL, "%s",
		     cw_baseline_what_name(said.first.what));
	cr_expect_eq(said.n_skipped_a, 21);
	cr_expect_eq(said.n_checked, 279);
	init(&a, 1);
	init(&b, 2);
	train(&a, 7, 100, false);
	train(&b, 0, 100, false);
	set(&b.rows[90], CW_BASELINE_IN, 55);
	compare();
	cr_expect_eq(said.n_skipped_b, 21);
	cr_expect_eq(said.first.what, CW_BASELINE_TENSOR_STATS);
	cr_expect_eq(said.first.row_b, 90);
	cr_expect_eq(said.first.row_a, 69);
}

/* If the run marks its steps, they decide, regardless of the numbers. */
Test(baseline, leaves_a_warm_up_out_by_the_steps)
{
	op(&a, 0, CW_OP_BROADCAST, 1, 1);
	op(&b, 0, CW_OP_BROADCAST, 1, 1);
	train(&a, 0, 100, true);
	train(&b, 40, 100, true);
	for (uint32_t i = 0; i < b.run.n_rows; i++)
		set(&b.rows[i], CW_BASELINE_IN, 3);
	set(&b.rows[0], CW_BASELINE_IN, 1);
	compare();
	cr_expect_eq(said.way, CW_BASELINE_BY_STEP);
	cr_expect_eq(said.n_skipped_a, 120);
	cr_expect_eq(said.first.what, CW_BASELINE_TENSOR_STATS);
	cr_expect_eq(said.first.row_a, 121);
	cr_expect_eq(said.first.row_b, 1);
	cr_expect_eq(said.n_missing + said.n_extra, 0);
}

/* Another seed: nothing agrees, and nothing is to be found at another place. */
Test(baseline, names_the_first_op_of_runs_that_have_nothing_in_common)
{
	train(&a, 0, 100, false);
	train(&b, 0, 100, false);
	for (uint32_t i = 2; i < b.run.n_rows; i++)
		set(&b.rows[i], CW_BASELINE_IN, drawn(i, 7) * 1.7);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_TENSOR_STATS);
	cr_expect_eq(said.first.row_a, 2);
	cr_expect_eq(said.n_skipped_a + said.n_skipped_b, 0);
}

Test(baseline, does_without_call_sites_where_programs_were_built_anew)
{
	static char other[3][32] = { "x.py:1 in f", "x.py:2 in f", "x.py:3 in f" };

	train(&a, 0, 20, false);
	train(&b, 0, 20, false);
	for (int i = 0; i < 3; i++)
		b.sites[i] = other[i];
	set(&b.rows[40], CW_BASELINE_OUT, 55);
	compare();
	cr_expect_eq(said.way, CW_BASELINE_BY_KIND);
	cr_expect_eq(said.first.what, CW_BASELINE_TENSOR_STATS);
	cr_expect_eq(said.first.row_a, 40);
}

/* Before the agent has found all libraries, the caller's library is unknown. */
Test(baseline, takes_a_site_that_is_not_known_for_any)
{
	static char code[] = "libffi.so.8+0x6f7a";

	train(&a, 0, 20, false);
	train(&b, 0, 20, false);
	b.rows[0].site = 0;
	a.rows[4].site = 0;
	b.sites[2] = code;
	b.rows[2].site = 3; /* before it could read the stack */
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(said.way, CW_BASELINE_BY_CALL);
}

Test(baseline, says_where_sequences_part_for_good)
{
	train(&a, 0, 3000, false);
	train(&b, 0, 10, false);
	for (unsigned i = 0; i < 2900; i++)
		op(&b, 0, i % 3 ? CW_OP_BROADCAST : CW_OP_REDUCE, 3, 1);
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_UNLIKE, "%s",
		     cw_baseline_what_name(said.first.what));
	cr_expect_eq(said.first.row_a, 30);
	cr_expect_gt(said.n_unlike, 5000);
	cr_expect_eq(said.n_tensor_stats, 0);
}

Test(baseline, keeps_sends_to_each_peer_apart)
{
	for (unsigned i = 0; i < 30; i++) {
		struct cw_baseline_row *x, *y;

		x = op(&a, 2, CW_OP_SEND, 1, drawn(i, 0));
		y = op(&b, 2, CW_OP_SEND, 1, drawn(i ^ 1, 0));
		x->seq = y->seq = i / 2 + 1;
		x->root_or_peer = i & 1;
		y->root_or_peer = (i & 1) ^ 1;
	}
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(said.n_checked, 30);
}

Test(baseline, leaves_out_what_is_denied)
{
	bool comms[3] = { false, true, false }, sites[3] = { true, false, false };

	train(&a, 0, 20, false);
	train(&b, 0, 20, false);
	set(&b.rows[3], CW_BASELINE_IN, 9); /* all_gather from forward */
	set(&b.rows[4], CW_BASELINE_IN, 9); /* on dp */
	a.run.is_site_denied = b.run.is_site_denied = sites;
	compare();
	cr_expect_eq(said.first.row_a, 4);
	a.run.is_comm_denied = b.run.is_comm_denied = comms;
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(said.n_denied, 40);
	cr_expect_eq(said.n_checked, 20);
	options.is_kind_denied[CW_OP_ALL_REDUCE] = true;
	compare();
	cr_expect_eq(said.n_checked, 0);
}

Test(baseline, matches_communicators_by_name_and_size)
{
	struct cw_baseline_comm c = b.comms[0];

	train(&a, 0, 20, false);
	train(&b, 0, 20, false);
	/* Made the other way round. */
	b.comms[0] = b.comms[1];
	b.comms[1] = c;
	for (uint32_t i = 0; i < b.run.n_rows; i++)
		b.rows[i].comm = b.rows[i].comm < 2 ? !b.rows[i].comm : b.rows[i].comm;
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	b.comms[1].nranks = 8;
	compare();
	cr_expect_eq(said.first.what, CW_BASELINE_MISSING);
	cr_expect_eq(said.n_missing, 40);
	cr_expect_eq(said.n_extra, 40);
}

Test(baseline, bears_numbers_that_cannot_be)
{
	train(&a, 0, 5, false);
	train(&b, 0, 5, false);
	a.rows[3].seq = UINT32_MAX;
	b.rows[6].seq = b.rows[3].seq;
	b.rows[4].dtype = 200;
	compare();
	cr_expect_neq(said.first.what, CW_BASELINE_EQUAL);
}

Test(baseline, orders_first_differences_of_ranks)
{
	struct cw_baseline_first x = { .rank = 0, .comm = 1 }, y = { .rank = 1, .comm = 1 };

	x.a = *op(&a, 0, CW_OP_ALL_REDUCE, 1, 1);
	y.a = *op(&a, 0, CW_OP_ALL_REDUCE, 1, 1);
	x.difference = (struct cw_baseline_difference){ .place = 7 };
	y.difference = (struct cw_baseline_difference){ .place = 3 };
	cr_expect(cw_baseline_is_before(&x, &y), "the lower number on one communicator");
	y.a.seq = x.a.seq;
	x.difference.side = CW_BASELINE_OUT;
	cr_expect(cw_baseline_is_before(&y, &x), "what went in, before what came out");
	y.comm = 2;
	x.a.step_plus_1 = 4;
	y.a.step_plus_1 = 5;
	cr_expect(cw_baseline_is_before(&x, &y), "the lower step");
	y.a.step_plus_1 = 4;
	cr_expect(cw_baseline_is_before(&y, &x), "after fewer ops");
}

/* ---- operators ---- */

#define LAYERS 20u

/* Call sites: of the layers, three each. */
enum { EMBED, HEAD, ATTEND, SCALE, MULTIPLY, BEHIND = ATTEND + 3 * LAYERS };

static char *operators[BEHIND], texts[BEHIND][32];

/* Everything is on a communicator of its own, and has the call site of its module. */
static void init_operators(struct run *r)
{
	for (unsigned i = 0; i < BEHIND; i++) {
		snprintf(texts[i], sizeof(texts[i]), "layer %u: op %u, forward", i / 3, i);
		operators[i] = texts[i];
	}
	r->comms[2] = (struct cw_baseline_comm){ .id = 0, .nranks = 1, .name = "operators" };
	r->run.sites = operators;
	r->run.n_sites = BEHIND;
}

static struct cw_baseline_row *call(struct run *r, unsigned site, unsigned step)
{
	struct cw_baseline_row *row =
		op(r, 2, CW_BASELINE_KIND_OPERATOR, site + 1, drawn(step, site));

	row->step_plus_1 = step + 1;
	row->redop = CW_REDOP_NONE;
	row->root_or_peer = N;
	return row;
}

/* Twenty layers; the attention of each is one operator, or two. */
static void forward_step(struct run *r, unsigned step, bool is_manual)
{
	call(r, EMBED, step);
	for (unsigned layer = 0; layer < LAYERS; layer++) {
		if (!is_manual)
			call(r, ATTEND + 3 * layer, step);
		for (unsigned site = SCALE; is_manual && site <= MULTIPLY; site++)
			call(r, site + 3 * layer, step);
	}
	call(r, HEAD, step);
}

static void init_both(void)
{
	init_operators(&a);
	init_operators(&b);
}

/* 3 x 20 a step differ: of all steps together more than any search goes through. */
Test(baseline, names_the_first_operator_of_another_kernel_in_each_step)
{
	init_both();
	for (unsigned step = 0; step < 50; step++) {
		forward_step(&a, step, false);
		forward_step(&b, step, true);
	}
	compare();
	cr_assert_eq(said.first.what, CW_BASELINE_MISSING);
	cr_assert_eq(said.first.row_a, 1);
	cr_assert_eq(said.n_missing, 50 * 20);
	cr_assert_eq(said.n_extra, 50 * 40);
	cr_assert_eq(said.n_checked, 50 * 2);
	cr_assert_eq(said.n_unlike + said.n_tensor_stats + said.n_called_otherwise, 0);
	cr_assert_eq(said.way, CW_BASELINE_BY_STEP);
}

Test(baseline, tells_an_operator_of_another_type_and_size_from_another_operator)
{
	init_both();
	forward_step(&a, 0, false);
	forward_step(&b, 0, false);
	b.rows[3].dtype = CW_DTYPE_BF16;
	b.rows[5].root_or_peer = N / 2;
	compare();
	cr_assert_eq(said.first.what, CW_BASELINE_DTYPE);
	cr_assert_eq(said.first.row_b, 3);
	cr_assert_eq(said.n_called_otherwise, 2);
	b.rows[3].dtype = CW_DTYPE_FP32;
	compare();
	cr_assert_eq(said.first.what, CW_BASELINE_COUNT);
	cr_assert_eq(said.first.row_b, 5);
}

/* One run looks at every fifth step, the other at each; nothing of it differs. */
Test(baseline, leaves_out_steps_of_operators_that_the_other_run_did_not_look_at)
{
	init_both();
	for (unsigned step = 0; step < 23; step++) {
		forward_step(&a, step, false);
		if (step % 5 == 0)
			forward_step(&b, step, false);
	}
	compare();
	cr_assert_eq(said.first.what, CW_BASELINE_EQUAL, "%s",
		     cw_baseline_what_name(said.first.what));
	cr_assert_eq(said.n_checked, 5 * 22);
	cr_assert_eq(said.n_skipped_a, 18 * 22);
}

Test(baseline, misses_the_last_step_of_operators_when_it_was_due)
{
	init_both();
	for (unsigned step = 0; step < 10; step++) {
		forward_step(&a, step, false);
		if (step < 9)
			forward_step(&b, step, false);
	}
	compare();
	cr_assert_eq(said.first.what, CW_BASELINE_MISSING);
	cr_assert_eq(said.n_missing, 22);
}

/* The mean of few elements is held against these, not against as many as came out. */
Test(baseline, allows_a_mean_what_its_own_side_has_elements_for)
{
	struct cw_baseline_difference d;
	struct cw_baseline_row *x, *y;

	init_both();
	x = call(&a, HEAD, 0);
	y = call(&b, HEAD, 0);
	x->root_or_peer = y->root_or_peer = 4;
	cw_baseline_row_set_value(x, CW_BASELINE_IN, CW_BASELINE_L2, 2);
	cw_baseline_row_set_value(y, CW_BASELINE_IN, CW_BASELINE_L2, 2);
	cw_baseline_row_set_value(x, CW_BASELINE_IN, CW_BASELINE_MEAN, 0.5);
	cw_baseline_row_set_value(y, CW_BASELINE_IN, CW_BASELINE_MEAN, 0.5 + 1e-6);
	cr_assert(cw_baseline_close(x, y, 1, &options, &d));
	x->root_or_peer = y->root_or_peer = 400;
	cr_assert_not(cw_baseline_close(x, y, 1, &options, &d));
	cr_assert_eq(d.side, CW_BASELINE_IN);
	cr_assert_eq(d.value, CW_BASELINE_MEAN);
}

static struct cw_baseline_first first_of(int32_t rank, const struct cw_baseline_row *row,
					 enum cw_baseline_side side)
{
	return (struct cw_baseline_first){
		.rank = rank,
		.comm = cw_baseline_row_is_operator(row) ? 0 : 7,
		.a = *row,
		.b = *row,
		.difference = { .what = CW_BASELINE_TENSOR_STATS, .side = side },
	};
}

Test(baseline, has_operators_before_the_collectives_that_they_feed)
{
	struct cw_baseline_row *reduce = op(&a, 1, CW_OP_ALL_REDUCE, 1, 1);
	struct cw_baseline_row *gelu = call(&a, ATTEND, 3);
	struct cw_baseline_first in, out, other, operator;

	reduce->step_plus_1 = 4;
	in = first_of(0, reduce, CW_BASELINE_IN);
	out = first_of(0, reduce, CW_BASELINE_OUT);
	other = first_of(1, reduce, CW_BASELINE_OUT);
	operator= first_of(0, gelu, CW_BASELINE_OUT);
	cr_assert(cw_baseline_is_before(&operator, & in));
	cr_assert_not(cw_baseline_is_before(&in, &operator));
	/* Its own went in as before: the operators have it from the collective. */
	cr_assert(cw_baseline_is_before(&out, &operator));
	cr_assert_not(cw_baseline_is_before(&operator, & out));
	cr_assert(cw_baseline_is_before(&operator, & other));
	reduce->step_plus_1 = 3;
	in = first_of(0, reduce, CW_BASELINE_IN);
	cr_assert(cw_baseline_is_before(&in, &operator));
}
