/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that the ranks of a run have together, and the common ones of two runs on other
 * numbers of ranks.
 */
#include "numerics/compare/group_run.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#define RANKS_MAX 4u
#define CALLS_MAX 8u

/* A run whose ranks make the same calls on the communicator that each of them has in a place. */
struct world {
	struct cw_baseline_group_run *together;
	struct cw_baseline_comm comms[RANKS_MAX][3];
	struct cw_baseline_row rows[RANKS_MAX][CALLS_MAX];
	uint32_t ranks, n_comms, n_rows;
};

static struct world a, b;
/* The resulting pair. */
static struct {
	struct cw_baseline_run a, b;
	uint64_t n_omitted_a, n_omitted_b;
} pair;
static char site[] = "train.py:88 in backward";
static char *sites[] = { site };

static void begin(struct world *w, uint32_t ranks)
{
	w->together = cw_baseline_group_run_new();
	cr_assert_not_null(w->together);
	w->ranks = ranks;
}

static void setup(void)
{
	begin(&a, 2);
	begin(&b, 4);
}

static void teardown(void)
{
	a.together = cw_baseline_group_run_free(a.together);
	b.together = cw_baseline_group_run_free(b.together);
	cr_expect_null(cw_baseline_group_run_free(NULL));
}

TestSuite(baseline_group_run, .init = setup, .fini = teardown);

/* Communicators of so many ranks each, one beside the other. */
static uint32_t comm(struct world *w, const char *name, uint32_t nranks)
{
	for (uint32_t r = 0; r < w->ranks; r++) {
		struct cw_baseline_comm *c = &w->comms[r][w->n_comms];

		c->id = 100 * w->n_comms + r / nranks + 1;
		c->nranks = nranks;
		c->comm_rank = (int32_t)(r % nranks);
		(void)strncpy(c->name, name, sizeof(c->name) - 1);
	}
	return w->n_comms++;
}

static void set(struct cw_baseline_row *row, double absmax, double mean, double l2)
{
	row->unit |= CW_BASELINE_HAS_OUT;
	cw_baseline_row_set_value(row, CW_BASELINE_OUT, CW_BASELINE_ABSMAX, absmax);
	cw_baseline_row_set_value(row, CW_BASELINE_OUT, CW_BASELINE_MEAN, mean);
	cw_baseline_row_set_value(row, CW_BASELINE_OUT, CW_BASELINE_L2, l2);
}

/* On all ranks; each rank's output is so many times larger than that of the one before. */
static void call(struct world *w, uint32_t comm, unsigned kind, uint64_t count, double factor)
{
	double value = 1;

	for (uint32_t r = 0; r < w->ranks; r++, value *= factor) {
		struct cw_baseline_row *row = &w->rows[r][w->n_rows];

		*row = (struct cw_baseline_row){ .unit = CW_BASELINE_UNIT_ROW | CW_BASELINE_HAS_IN,
						 .kind = (uint8_t)kind,
						 .dtype = CW_DTYPE_FP32,
						 .redop = CW_REDOP_SUM,
						 .comm = (uint16_t)comm,
						 .site = 1,
						 .step_plus_1 = 1,
						 .root_or_peer = -1 };
		row->seq = 1;
		for (uint32_t i = 0; i < w->n_rows; i++)
			row->seq += w->rows[r][i].comm == comm;
		cw_baseline_row_set_count(row, count);
		set(row, 3 * value, 0.5, 4 * value);
	}
	w->n_rows++;
}

typedef int (*take_fn)(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

static int each_rank(struct world *w, take_fn take)
{
	int r = 0;

	for (uint32_t i = 0; i < w->ranks && r == 0; i++) {
		struct cw_baseline_run run = { .rows = w->rows[i],
					       .n_rows = w->n_rows,
					       .comms = w->comms[i],
					       .n_comms = w->n_comms,
					       .sites = sites,
					       .n_sites = 1 };

		r = take(w->together, &run);
	}
	return r;
}

static int add(struct world *w)
{
	return each_rank(w, cw_baseline_group_run_add);
}

static void choose(void)
{
	cr_assert_eq(each_rank(&a, cw_baseline_group_run_meet), 0);
	cr_assert_eq(each_rank(&b, cw_baseline_group_run_meet), 0);
	cr_assert_eq(cw_baseline_group_runs_choose(a.together, b.together), 0);
}

static void make_pair(void)
{
	choose();
	cr_assert_eq(add(&a), 0);
	cr_assert_eq(add(&b), 0);
	cr_assert_eq(cw_baseline_group_run_finish(a.together, &pair.a, &pair.n_omitted_a), 0);
	cr_assert_eq(cw_baseline_group_run_finish(b.together, &pair.b, &pair.n_omitted_b), 0);
}

static double value(const struct cw_baseline_run *run, uint32_t row, enum cw_baseline_value v)
{
	return cw_baseline_row_value(&run->rows[row], CW_BASELINE_OUT, v);
}

static struct cw_baseline_said compare(void)
{
	struct cw_baseline_options options;
	struct cw_baseline_said said;

	cw_baseline_options_init(&options);
	options.are_groups = true;
	cr_assert_eq(cw_baseline_compare(&pair.a, &pair.b, &options, &said), 0);
	return said;
}

Test(baseline_group_run, sums_are_compared_by_what_comes_out)
{
	call(&a, comm(&a, "dp", 2), CW_OP_ALL_REDUCE, 64, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_ALL_REDUCE, 64, 1);
	make_pair();
	cr_assert_eq(pair.a.n_rows, 1);
	cr_assert_eq(pair.b.n_rows, 1);
	cr_expect_not(cw_baseline_row_has(pair.a.rows, CW_BASELINE_IN), "each rank's own");
	cr_expect_eq(cw_baseline_row_count(pair.a.rows), 64);
	cr_expect_float_eq(value(&pair.a, 0, CW_BASELINE_MEAN), 0.5, 1e-9);
	cr_expect_str_eq(pair.a.sites[pair.a.rows[0].site - 1], site);
	cr_expect_eq(pair.n_omitted_a + pair.n_omitted_b, 0);
	cr_expect_eq(compare().first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(compare().n_checked, 1);
}

Test(baseline_group_run, a_sum_that_differs_is_told)
{
	call(&a, comm(&a, "dp", 2), CW_OP_ALL_REDUCE, 64, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_ALL_REDUCE, 64, 1);
	for (uint32_t r = 0; r < 4; r++)
		set(&b.rows[r][0], 3.1, 0.5, 4);
	make_pair();
	cr_expect_eq(compare().first.what, CW_BASELINE_TENSOR_STATS);
	cr_expect_eq(compare().first.value, CW_BASELINE_ABSMAX);
}

Test(baseline_group_run, parts_are_put_together)
{
	/* Two parts of 32, and four of 17, where the last has four zeros. */
	call(&a, comm(&a, "dp", 2), CW_OP_REDUCE_SCATTER, 32, 2);
	call(&b, comm(&b, "dp", 4), CW_OP_REDUCE_SCATTER, 17, 1);
	set(&b.rows[0][0], 1, 0.1, 2);
	set(&b.rows[1][0], 6, 0.1, 8);
	set(&b.rows[2][0], 2, 0.1, 2);
	set(&b.rows[3][0], 2, 0.1, sqrt(8));
	make_pair();
	cr_expect_eq(cw_baseline_row_count(pair.a.rows), 32);
	cr_expect(isnan(value(&pair.a, 0, CW_BASELINE_MEAN)));
	cr_expect_float_eq(value(&pair.a, 0, CW_BASELINE_ABSMAX), 6, 1e-9);
	cr_expect_float_eq(value(&pair.a, 0, CW_BASELINE_L2), sqrt(16 + 64), 1e-9);
	cr_expect_eq(compare().first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(compare().n_checked, 1);
}

Test(baseline_group_run, a_part_that_is_missing_leaves_no_numbers)
{
	call(&a, comm(&a, "dp", 2), CW_OP_REDUCE_SCATTER, 32, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_REDUCE_SCATTER, 16, 1);
	b.rows[2][0].unit = CW_BASELINE_UNIT_ROW;
	make_pair();
	cr_expect_eq(compare().n_paired, 1);
	cr_expect_eq(compare().n_checked, 0);
}

/* As torch's DistributedDataParallel gathers what each rank knows of the model's parameters. */
Test(baseline_group_run, what_each_member_has_of_its_own_is_not_compared)
{
	call(&a, comm(&a, "dp", 2), CW_OP_ALL_GATHER, 6, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_ALL_GATHER, 6, 1);
	for (uint32_t r = 0; r < 4; r++)
		set(&b.rows[r][0], 3, 0.5, 5.6);
	make_pair();
	cr_expect_eq(compare().first.what, CW_BASELINE_EQUAL);
	cr_expect_eq(compare().n_paired, 1);
	cr_expect_eq(compare().n_own, 1);
	cr_expect_eq(compare().n_checked, 0);
}

Test(baseline_group_run, a_copy_is_enough)
{
	call(&a, comm(&a, "dp", 2), CW_OP_ALL_GATHER, 32, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_ALL_GATHER, 16, 1);
	b.rows[0][0].unit = a.rows[0][0].unit = CW_BASELINE_UNIT_ROW;
	b.rows[1][0].nonfinite[CW_BASELINE_OUT] = 2;
	make_pair();
	cr_expect_eq(compare().n_checked, 1);
	cr_expect_eq(compare().first.what, CW_BASELINE_NONFINITE);
	cr_expect_eq(compare().first.b, 2);
}

Test(baseline_group_run, parts_of_a_replica_are_omitted)
{
	uint32_t tp = comm(&a, "tp", 2), world = comm(&a, "world", 2);

	call(&a, tp, CW_OP_ALL_REDUCE, 64, 1);
	call(&a, world, CW_OP_ALL_REDUCE, 8, 1);
	call(&a, world, CW_OP_SEND, 8, 1);
	tp = comm(&b, "tp", 2);
	world = comm(&b, "world", 4);
	call(&b, tp, CW_OP_ALL_REDUCE, 32, 1);
	call(&b, world, CW_OP_ALL_REDUCE, 8, 1);
	make_pair();
	cr_assert_eq(pair.a.n_rows, 1);
	cr_expect_str_eq(pair.a.comms[pair.a.rows[0].comm].name, "world");
	cr_expect_eq(pair.n_omitted_a, 1 + 2, "a sum, and what two ranks send");
	cr_expect_eq(pair.n_omitted_b, 2, "of two replicas");
	cr_expect_eq(compare().first.what, CW_BASELINE_EQUAL);
}

/* Shards of a hybrid: of each name several, the n-th is the n-th's counterpart. */
Test(baseline_group_run, communicators_of_one_name_are_paired_in_their_order)
{
	call(&a, comm(&a, "dp", 1), CW_OP_ALL_REDUCE, 64, 2);
	call(&b, comm(&b, "dp", 2), CW_OP_ALL_REDUCE, 64, 1);
	set(&b.rows[2][0], 6, 0.5, 8);
	set(&b.rows[3][0], 6, 0.5, 8);
	make_pair();
	cr_expect_eq(pair.a.n_rows, 2);
	cr_expect_eq(pair.b.n_rows, 2);
	cr_expect_eq(compare().n_checked, 2);
	cr_expect_eq(compare().first.what, CW_BASELINE_EQUAL);
}

Test(baseline_group_run, of_all_to_all_only_the_calls_are_compared)
{
	call(&a, comm(&a, "ep", 2), CW_OP_ALL_TO_ALL, 64, 1);
	call(&b, comm(&b, "ep", 4), CW_OP_ALL_TO_ALL, 64, 3);
	make_pair();
	cr_expect_eq(compare().n_paired, 1);
	cr_expect_eq(compare().n_checked, 0);
}

Test(baseline_group_run, numbers_of_calls_have_a_limit)
{
	call(&a, comm(&a, "dp", 2), CW_OP_ALL_REDUCE, 64, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_ALL_REDUCE, 64, 1);
	choose();
	a.rows[0][0].seq = CW_BASELINE_ROWS + 1;
	cr_expect_eq(add(&a), -E2BIG);
}

/* The reserved room counts, not the used part. */
Test(baseline_group_run, room_for_calls_has_a_limit)
{
	static struct cw_baseline_row rows[24 * 17];
	struct cw_baseline_comm small[24], large[24];
	struct cw_baseline_run x = { .rows = rows, .comms = small, .n_comms = 24 };
	struct cw_baseline_run y = { .comms = large, .n_comms = 24 };

	for (uint32_t i = 0; i < 24; i++) {
		small[i] = (struct cw_baseline_comm){ .id = i + 1, .nranks = 2 };
		snprintf(small[i].name, sizeof(small[i].name), "dp%u", i);
		large[i] = small[i];
		large[i].nranks = 4;
		for (uint32_t seq = 64; seq < CW_BASELINE_ROWS; seq *= 2)
			rows[x.n_rows++] = (struct cw_baseline_row){ .unit = CW_BASELINE_UNIT_ROW,
								     .kind = CW_OP_ALL_REDUCE,
								     .comm = (uint16_t)i,
								     .seq = seq };
	}
	cr_assert_eq(cw_baseline_group_run_meet(a.together, &x), 0);
	cr_assert_eq(cw_baseline_group_run_meet(b.together, &y), 0);
	cr_assert_eq(cw_baseline_group_runs_choose(a.together, b.together), 0);
	cr_expect_eq(cw_baseline_group_run_add(a.together, &x), -E2BIG);
}

/* World 8 with tensor parallelism of two has groups 1 to 4 for that, and 5 and 6 of four members.
 */
Test(baseline_group_run, numbers_of_groups_are_no_names)
{
	uint32_t tp = comm(&a, "mesh_tp (1)", 1), dp = comm(&a, "mesh_dp (3)", 2);

	call(&a, tp, CW_OP_ALL_REDUCE, 64, 1);
	call(&a, dp, CW_OP_ALL_REDUCE, 8, 1);
	call(&a, comm(&a, "5", 2), CW_OP_ALL_REDUCE, 16, 1);
	tp = comm(&b, "mesh_tp (1)", 1);
	dp = comm(&b, "mesh_dp (5)", 4);
	call(&b, tp, CW_OP_ALL_REDUCE, 64, 1);
	call(&b, dp, CW_OP_ALL_REDUCE, 8, 1);
	call(&b, comm(&b, "5", 1), CW_OP_ALL_REDUCE, 32, 1);
	make_pair();
	cr_assert_eq(pair.a.n_rows, 1);
	cr_expect_str_eq(pair.a.comms[0].name, "mesh_dp (3)");
	cr_expect_str_eq(pair.b.comms[0].name, "mesh_dp (5)");
	cr_expect_eq(compare().n_checked, 1);
	cr_expect_eq(compare().first.what, CW_BASELINE_EQUAL);
}

/* … and a communicator without a name is not one of those. */
Test(baseline_group_run, what_has_a_number_alone_is_not_paired_with_what_has_no_name)
{
	call(&a, comm(&a, "5", 2), CW_OP_ALL_REDUCE, 64, 1);
	call(&a, comm(&a, "", 2), CW_OP_ALL_REDUCE, 8, 1);
	call(&b, comm(&b, "", 4), CW_OP_ALL_REDUCE, 8, 1);
	make_pair();
	cr_assert_eq(pair.a.n_rows, 1);
	cr_expect_eq(cw_baseline_row_count(pair.a.rows), 8);
	cr_expect_eq(compare().n_checked, 1);
}

Test(baseline_group_run, a_name_that_one_member_knows_is_the_groups)
{
	call(&a, comm(&a, "dp", 2), CW_OP_ALL_REDUCE, 64, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_ALL_REDUCE, 64, 1);
	a.comms[0][0].name[0] = b.comms[0][0].name[0] = b.comms[2][0].name[0] = '\0';
	make_pair();
	cr_assert_eq(pair.a.n_rows, 1);
	cr_expect_str_eq(pair.a.comms[0].name, "dp");
	cr_expect_eq(compare().n_checked, 1);
}

/* The lower step is first, whichever group has it. */
Test(baseline_group_run, the_first_is_that_of_the_lower_step)
{
	comm(&a, "dp", 1);
	comm(&b, "dp", 2);
	for (uint32_t i = 0; i < 4; i++) {
		call(&a, 0, CW_OP_ALL_REDUCE, 64, 1);
		call(&b, 0, CW_OP_ALL_REDUCE, 64, 1);
		for (uint32_t r = 0; r < 4; r++)
			a.rows[r % 2][i].step_plus_1 = b.rows[r][i].step_plus_1 = i + 1;
	}
	for (uint32_t r = 0; r < 4; r++) {
		set(&b.rows[r][3], 5, 0.5, 4);
		if (r >= 2)
			set(&b.rows[r][1], 5, 0.5, 4);
	}
	make_pair();
	cr_expect_eq(compare().first.what, CW_BASELINE_TENSOR_STATS);
	cr_expect_eq(pair.b.rows[compare().first.row_b].step_plus_1, 2);
}

/* Hybrid sharding on more nodes, with longer shards: the sum over replicas is shorter. */
Test(baseline_group_run, a_sum_of_another_length_is_not_compared)
{
	call(&a, comm(&a, "replicate", 2), CW_OP_ALL_REDUCE, 256, 1);
	call(&b, comm(&b, "replicate", 4), CW_OP_ALL_REDUCE, 128, 1);
	make_pair();
	cr_expect_eq(compare().n_own, 1);
	cr_expect_eq(compare().first.what, CW_BASELINE_EQUAL);
}

Test(baseline_group_run, a_tensors_tolerance_is_that_of_all_its_elements)
{
	struct cw_baseline_options options;
	struct cw_baseline_said said;

	call(&a, comm(&a, "dp", 2), CW_OP_REDUCE_SCATTER, 200, 1);
	call(&b, comm(&b, "dp", 4), CW_OP_REDUCE_SCATTER, 100, 1);
	for (uint32_t r = 0; r < 4; r++) {
		set(&a.rows[r % 2][0], 1, 0.1, sqrt(50));
		set(&b.rows[r][0], 1, 0.1, 10.018 / 2);
	}
	make_pair();
	cw_baseline_options_init(&options);
	options.are_groups = true;
	options.of[CW_DTYPE_FP32].atol = 1e-3;
	cr_assert_eq(cw_baseline_compare(&pair.a, &pair.b, &options, &said), 0);
	cr_expect_eq(said.first.what, CW_BASELINE_EQUAL);
	options.of[CW_DTYPE_FP32].atol = 0.8e-3;
	cr_assert_eq(cw_baseline_compare(&pair.a, &pair.b, &options, &said), 0);
	cr_expect_eq(said.first.what, CW_BASELINE_TENSOR_STATS);
}
