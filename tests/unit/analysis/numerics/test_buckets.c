/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a step's calls carried which bucket: only what follows from order and sizes is certain.
 */
#include "analysis/numerics/buckets.h"

#include <criterion/criterion.h>

#include "model/op.h"

#define NONE CW_NUMERICS_NONE

static struct cw_numerics_look looks[64];
static const struct cw_numerics_comm comms[] = { { .id = 1, .name = "dp", .nranks = 4 },
						 { .id = 2, .name = "tp", .nranks = 2 } };
static const struct cw_numerics_rank ranks[] = { { .rank = 0 } };
static struct cw_numerics_job job;
static struct cw_numerics_bucket found[64];
/* The layers are alike, but for the outermost. */
static const uint64_t sizes[] = { 800, 800, 800, 96 };
static struct cw_numerics_buckets buckets;
static uint64_t seq;
static int64_t step;

static void setup(void)
{
	job = (struct cw_numerics_job){ looks, 0, comms, 2, ranks, 1 };
	buckets =
		(struct cw_numerics_buckets){ .kind = CW_OP_ALL_REDUCE, .elements = sizes, .n = 4 };
	seq = 0;
	step = 0;
}

TestSuite(buckets, .init = setup);

static void add(unsigned kind, uint64_t elements, bool is_output)
{
	looks[job.n_looks++] = (struct cw_numerics_look){ .seq = seq,
							  .step = step,
							  .offered = elements,
							  .kind = (uint8_t)kind,
							  .is_output = is_output };
}

static void call(unsigned kind, uint64_t elements)
{
	seq++;
	add(kind, elements, false);
	add(kind, elements, true);
}

static void train(void)
{
	for (unsigned i = 0; i < 4; i++)
		call(CW_OP_ALL_REDUCE, sizes[i]);
	step++;
}

static void match(void)
{
	buckets.last = job.n_looks;
	cr_assert_eq(cw_numerics_buckets_match(&job, &buckets, found), 0);
}

static void expect(unsigned call_index, uint32_t bucket, bool is_certain)
{
	for (unsigned side = 0; side < 2; side++) {
		const struct cw_numerics_bucket *f = &found[2 * call_index + side];

		cr_expect_eq(f->bucket, bucket, "call %u: bucket %u", call_index, f->bucket);
		cr_expect_eq(f->is_certain, is_certain, "call %u", call_index);
	}
}

Test(buckets, follow_the_order_of_the_calls)
{
	train();
	train();
	match();
	for (unsigned i = 0; i < 8; i++)
		expect(i, i % 4, true);
}

Test(buckets, are_told_from_other_calls_by_their_size)
{
	call(CW_OP_BROADCAST, 800); /* of another kind */
	train();
	call(CW_OP_ALL_REDUCE, 1); /* the loss */
	train();
	match();
	expect(0, NONE, false);
	expect(1, 0, true);
	expect(5, NONE, false);
	for (unsigned i = 0; i < 4; i++)
		expect(6 + i, i, true);
}

Test(buckets, of_several_backwards_in_a_step_follow_each_other)
{
	train();
	step--;
	train();
	match();
	expect(4, 0, true);
	expect(7, 3, true);
}

/* A call between two alike, of which nobody looked at the first. */
Test(buckets, are_not_certain_behind_a_call_that_is_missing)
{
	call(CW_OP_ALL_REDUCE, 800);
	seq++;
	call(CW_OP_ALL_REDUCE, 800);
	call(CW_OP_ALL_REDUCE, 96);
	step++;
	train();
	match();
	expect(0, 0, true);
	expect(1, NONE, false);
	expect(2, 3, false); /* the only one of its size */
	expect(3, 0, true);
}

Test(buckets, are_not_certain_where_a_step_begins_in_the_middle)
{
	seq = 40;
	train();
	train();
	match();
	expect(0, NONE, false);
	expect(3, 3, false);
	expect(4, 0, true);
}

Test(buckets, are_not_certain_in_another_order)
{
	call(CW_OP_ALL_REDUCE, 96);
	call(CW_OP_ALL_REDUCE, 800);
	match();
	expect(0, 3, false);
	expect(1, NONE, false);
}

Test(buckets, are_not_certain_without_steps)
{
	step = -1;
	call(CW_OP_ALL_REDUCE, 800);
	call(CW_OP_ALL_REDUCE, 96);
	match();
	expect(0, NONE, false);
	expect(1, 3, false);
}

Test(buckets, know_what_came_out_by_what_went_in)
{
	buckets.kind = CW_OP_REDUCE_SCATTER;
	seq = 1;
	add(CW_OP_REDUCE_SCATTER, 800, false);
	add(CW_OP_REDUCE_SCATTER, 200, true);
	seq = 7; /* nobody looked at what went in */
	add(CW_OP_REDUCE_SCATTER, 24, true);
	match();
	expect(0, 0, true);
	cr_expect_eq(found[2].bucket, 3);
	cr_expect_not(found[2].is_certain);
}

Test(buckets, of_another_communicator_are_left_alone)
{
	train();
	for (uint32_t i = 0; i < job.n_looks; i++)
		looks[i].comm = 1;
	match();
	expect(0, NONE, false);
	buckets.n = 0;
	buckets.comm = 1;
	match();
	expect(0, NONE, false);
}
