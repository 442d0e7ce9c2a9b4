/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a step's calls carried which bucket: only what follows from order and sizes is certain.
 */
#include "numerics/judge/buckets.h"

#include <criterion/criterion.h>

#include "model/op.h"

#define NONE CW_NUMERICS_NONE

static struct cw_numerics_sample samples[64];
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
	job = (struct cw_numerics_job){ samples, 0, comms, 2, ranks, 1 };
	buckets =
		(struct cw_numerics_buckets){ .kind = CW_OP_ALL_REDUCE, .elements = sizes, .n = 4 };
	seq = 0;
	step = 0;
}

TestSuite(buckets, .init = setup);

static void add(unsigned kind, uint64_t elements, bool is_output)
{
	samples[job.n_samples++] = (struct cw_numerics_sample){ .seq = seq,
								.step = step,
								.offered = elements,
								.kind = (uint8_t)kind,
								.dtype = CW_DTYPE_FP32,
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
	buckets.last = job.n_samples;
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

/* A second backward, or another model on the same group. */
Test(buckets, of_two_turns_in_a_step_are_not_certain)
{
	train();
	step--;
	train();
	train();
	match();
	for (unsigned i = 0; i < 8; i++)
		expect(i, i % 4 == 3 ? 3 : NONE, false);
	expect(8, 0, true);
}

/* Layers that are left out at random. */
Test(buckets, of_a_step_with_fewer_are_not_certain)
{
	train();
	call(CW_OP_ALL_REDUCE, 800);
	call(CW_OP_ALL_REDUCE, 800);
	step++;
	train();
	match();
	expect(0, 0, true);
	expect(4, NONE, false);
	expect(5, NONE, false);
	expect(6, 0, true);
}

/* As when the job died. */
Test(buckets, of_a_last_step_are_told_as_far_as_it_came)
{
	train();
	call(CW_OP_ALL_REDUCE, 800);
	call(CW_OP_ALL_REDUCE, 800);
	match();
	expect(4, 0, true);
	expect(5, 1, true);
}

Test(buckets, of_a_first_step_that_is_not_over_are_not_certain)
{
	call(CW_OP_ALL_REDUCE, 800);
	call(CW_OP_ALL_REDUCE, 800);
	match();
	expect(0, NONE, false);
	expect(1, NONE, false);
}

/* Of a metric, before the first bucket. */
Test(buckets, are_not_certain_beside_a_call_of_the_programs_own)
{
	train();
	call(CW_OP_ALL_REDUCE, 800);
	train();
	match();
	for (unsigned i = 4; i < 9; i++)
		expect(i, i == 8 ? 3 : NONE, false);
}

Test(buckets, are_no_whole_numbers_and_no_maxima)
{
	train();
	call(CW_OP_ALL_REDUCE, 96);
	samples[job.n_samples - 2].dtype = samples[job.n_samples - 1].dtype = CW_DTYPE_INT64;
	call(CW_OP_ALL_REDUCE, 96);
	samples[job.n_samples - 2].redop = samples[job.n_samples - 1].redop = CW_REDOP_MAX;
	train();
	match();
	expect(4, NONE, false);
	expect(5, NONE, false);
	expect(6, 0, true);
}

/* A call between two alike; the first has no summary. */
Test(buckets, are_not_certain_behind_a_call_that_is_missing)
{
	call(CW_OP_ALL_REDUCE, 800);
	seq++;
	call(CW_OP_ALL_REDUCE, 800);
	call(CW_OP_ALL_REDUCE, 96);
	step++;
	train();
	match();
	expect(0, NONE, false);
	expect(1, NONE, false);
	expect(2, 3, false); /* the only one of its size */
	expect(3, 0, true);
}

/* Nor where only what came out of it was looked at. */
Test(buckets, are_not_certain_behind_an_input_that_is_missing)
{
	train();
	seq++;
	add(CW_OP_ALL_REDUCE, 800, true);
	call(CW_OP_ALL_REDUCE, 800);
	match();
	cr_expect_eq(found[8].bucket, NONE);
	cr_expect_eq(found[9].bucket, NONE);
	cr_expect_eq(found[10].bucket, NONE);
}

/* A broadcast feeds its root alone: DistributedDataParallel's of buffers. */
Test(buckets, are_certain_behind_a_broadcast)
{
	for (unsigned i = 0; i < 2; i++) {
		seq++;
		add(CW_OP_BROADCAST, 12, true);
		train();
	}
	match();
	cr_expect_eq(found[1].bucket, 0);
	cr_expect(found[1].is_certain);
	cr_expect_eq(found[10].bucket, 0);
	cr_expect(found[10].is_certain);
}

static void expect_the_second_step_alone(void)
{
	train();
	train();
	match();
	expect(0, NONE, false);
	expect(3, 3, false);
	expect(4, 0, true);
}

Test(buckets, are_not_certain_before_the_step_from_which_on_they_are_so)
{
	buckets.step = 1;
	expect_the_second_step_alone();
}

Test(buckets, are_not_certain_where_a_step_begins_in_the_middle)
{
	seq = 40;
	expect_the_second_step_alone();
}

Test(buckets, are_not_certain_in_another_order)
{
	train();
	call(CW_OP_ALL_REDUCE, 96);
	call(CW_OP_ALL_REDUCE, 800);
	match();
	expect(4, 3, false);
	expect(5, NONE, false);
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
	for (unsigned i = 0; i < 4; i++) {
		seq++;
		add(CW_OP_REDUCE_SCATTER, sizes[i], false);
		add(CW_OP_REDUCE_SCATTER, sizes[i] / 4, true);
	}
	step++;
	seq = 0; /* no sample at inputs, and no counts */
	add(CW_OP_REDUCE_SCATTER, 24, true);
	match();
	for (unsigned i = 0; i < 4; i++)
		expect(i, i, true);
	cr_expect_eq(found[8].bucket, 3);
	cr_expect_not(found[8].is_certain);
}

Test(buckets, of_another_communicator_are_left_alone)
{
	train();
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].comm = 1;
	match();
	expect(0, NONE, false);
	buckets.n = 0;
	buckets.comm = 1;
	match();
	expect(0, NONE, false);
}
