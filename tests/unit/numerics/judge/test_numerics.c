/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of a job's numbers, on samples that the tests write down. */
#include "numerics/judge/numerics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "model/op.h"

#define RANKS 4u
#define MAX_SAMPLES 8192u
#define ELEMENTS 1000u

static struct cw_numerics_sample samples[MAX_SAMPLES];
static struct cw_numerics_comm comms[3];
static struct cw_numerics_rank ranks[RANKS];
static struct cw_numerics_job job;
static struct cw_numerics_report said;
static uint32_t n_launches[RANKS];

static void setup(void)
{
	memset(n_launches, 0, sizeof(n_launches));
	for (uint32_t i = 0; i < 3; i++)
		comms[i] = (struct cw_numerics_comm){ .id = i + 1, .name = "dp", .nranks = RANKS };
	for (uint32_t i = 0; i < RANKS; i++)
		ranks[i] = (struct cw_numerics_rank){ .rank = (int32_t)i, .is_whole = true };
	job = (struct cw_numerics_job){
		.samples = samples, .comms = comms, .n_comms = 3, .ranks = ranks, .n_ranks = RANKS
	};
}

static void teardown(void)
{
	cw_numerics_report_fini(&said);
}

TestSuite(numerics, .init = setup, .fini = teardown);

/* A sample of a gradient: all values are `value`, so all sums are known. */
static struct cw_numerics_sample *add(uint32_t rank, uint32_t comm, uint64_t seq, bool is_output,
				      double value)
{
	struct cw_numerics_sample *l = &samples[job.n_samples++];

	cr_assert_leq(job.n_samples, MAX_SAMPLES);
	*l = (struct cw_numerics_sample){
		.rank = rank,
		.comm = comm,
		.order = ++n_launches[rank],
		.root_or_peer = -1,
		.seq = seq,
		.step = -1,
		.elements = ELEMENTS,
		.offered = ELEMENTS,
		.abs_max = fabs(value),
		.abs_min = fabs(value),
		.mean = value,
		.l2 = fabs(value) * sqrt(ELEMENTS),
		.checksum = (uint64_t)(seq * 100 + is_output),
		.stride = 1,
		.kind = CW_OP_ALL_REDUCE,
		.dtype = CW_DTYPE_FP16,
		.redop = CW_REDOP_SUM,
		.is_output = is_output,
	};
	return l;
}

/* An all_reduce of all ranks, each with that value; step -1 = not marked. */
static void call(uint32_t comm, uint64_t seq, int64_t step, double value)
{
	uint32_t from = job.n_samples;

	for (uint32_t r = 0; r < RANKS; r++)
		add(r, comm, seq, false, value);
	for (uint32_t r = 0; r < RANKS; r++)
		add(r, comm, seq, true, value * RANKS);
	for (uint32_t i = from; i < job.n_samples; i++)
		samples[i].step = step;
}

static void spoil(uint32_t from, bool is_input)
{
	for (uint32_t i = from; i < job.n_samples; i++) {
		if (!samples[i].is_output && !is_input)
			continue;
		samples[i].nans = 1;
	}
}

static void judge(void)
{
	cw_numerics_report_fini(&said);
	cr_assert_eq(cw_numerics_judge(&job, &said), 0);
}

static const struct cw_numerics_sample *first(uint32_t i)
{
	cr_assert_lt(i, said.n_firsts);
	return &samples[said.firsts[i].sample];
}

/* ---- the first ---- */

Test(numerics, says_nothing_of_healthy_numbers)
{
	for (uint64_t s = 1; s <= 100; s++)
		call(0, s, -1, 1 + (double)(s * 7 % 5));
	judge();
	cr_assert_not(cw_numerics_is_alarming(&said));
	cr_assert_eq(said.n_bad, 0);
	cr_assert_eq(said.n_replicas_checked, 100);
	cr_assert_eq(said.n_sums_checked, 100);
}

Test(numerics, nothing_at_all_is_healthy)
{
	judge();
	cr_assert_not(cw_numerics_is_alarming(&said));
}

Test(numerics, names_the_rank_that_fed_the_first_nan)
{
	uint32_t from;

	call(0, 1, -1, 1);
	from = job.n_samples;
	call(0, 2, -1, 1);
	samples[from + 2].nans = 3; /* rank 2's input */
	for (uint32_t i = from + RANKS; i < job.n_samples; i++)
		samples[i].nans = 3;
	from = job.n_samples;
	call(0, 3, -1, 1);
	spoil(from, true); /* all feed the bad output on */
	judge();
	cr_assert_eq(said.n_firsts, 1);
	cr_assert_eq(said.firsts[0].origin, CW_NUMERICS_BY_RANK);
	cr_assert_eq(first(0)->rank, 2);
	cr_assert_eq(first(0)->seq, 2);
	cr_assert(cw_numerics_is_alarming(&said));
}

Test(numerics, of_two_that_feed_it_the_earlier_call_is_first)
{
	add(1, 0, 7, false, 1)->infs = 1;
	add(3, 0, 5, false, 1)->infs = 1;
	judge();
	cr_assert_eq(said.n_firsts, 1);
	cr_assert_eq(first(0)->rank, 3);
	cr_assert_not(said.is_first_by_clock);
}

Test(numerics, of_two_communicators_the_clock_decides_and_says_so)
{
	struct cw_numerics_sample *l = add(1, 0, 7, false, 1);

	l->infs = 1;
	l->at_ns = 500;
	l = add(3, 1, 50, false, 1);
	l->infs = 1;
	l->at_ns = 400;
	judge();
	cr_assert_eq(said.n_firsts, 1);
	cr_assert_eq(first(0)->rank, 3);
	cr_assert(said.is_first_by_clock);
}

/* A sample has the time of its call's begin, and a receive may have been posted long before. */
Test(numerics, what_was_received_is_not_earlier_than_what_was_fed)
{
	struct cw_numerics_sample *l = add(1, 0, 7, false, 1);

	l->kind = CW_OP_SEND;
	l->nans = 1;
	l->at_ns = 500;
	l = add(3, 0, 7, true, 1);
	l->kind = CW_OP_RECV;
	l->nans = 1;
	l->at_ns = 400;
	judge();
	cr_assert_eq(said.n_firsts, 2, "who fed it is named, and who may have had it of another");
	cr_assert_eq(first(0)->rank, 1);
	l->at_ns = 600;
	cw_numerics_report_fini(&said);
	judge();
	cr_assert_eq(said.n_firsts, 1);
	cr_assert_eq(first(0)->rank, 1);
}

Test(numerics, names_all_that_nothing_orders)
{
	add(1, 0, 7, false, 1)->infs = 1;
	add(3, 1, 50, false, 1)->infs = 1;
	judge();
	cr_assert_eq(said.n_firsts, 2);
}

Test(numerics, a_sum_of_finite_numbers_that_overflows_is_the_operations)
{
	uint32_t from = job.n_samples;

	call(0, 1, -1, 40000);
	for (uint32_t i = from; i < job.n_samples; i++)
		if (samples[i].is_output)
			samples[i].infs = ELEMENTS;
	judge();
	cr_assert_eq(said.n_firsts, 1, "one call, told once");
	cr_assert_eq(said.firsts[0].origin, CW_NUMERICS_SUM);
}

Test(numerics, what_not_all_inputs_were_seen_of_is_no_ones)
{
	add(0, 0, 1, false, 1);
	add(1, 0, 1, false, 1)->elements = ELEMENTS / 2;
	add(2, 0, 1, false, 1);
	add(3, 0, 1, false, 1);
	add(0, 0, 1, true, 1)->nans = 1;
	judge();
	cr_assert_eq(said.n_firsts, 1);
	cr_assert_eq(said.firsts[0].origin, CW_NUMERICS_RECEIVED);
}

/* ---- loss scaling ---- */

/* Steps of two calls each; those whose bit is set in `bad` overflow. scale[] is the loss scale. */
static void train(unsigned n, const double *scale, uint64_t bad, bool is_marked)
{
	for (unsigned s = 0; s < n; s++) {
		uint32_t from = job.n_samples;

		for (unsigned k = 0; k < 2; k++)
			call(0, s * 2 + k + 1, is_marked ? (int64_t)s : -1,
			     scale[s] * (1 + k) * (1 + 0.1 * (double)(s * 7 % 3)));
		for (uint32_t i = from; i < job.n_samples; i++)
			if (!is_marked)
				samples[i].offered = samples[i].elements =
					ELEMENTS + samples[i].seq % 2;
		if (bad >> s & 1)
			spoil(from, true);
	}
	judge();
}

Test(numerics, knows_loss_scaling_by_its_back_off)
{
	const double scale[] = { 8, 8, 8, 8, 4, 4, 4 };

	train(7, scale, 1 << 3, true);
	cr_assert_eq(said.n_rows, 1);
	cr_assert(said.rows[0].is_scaling);
	cr_assert_eq(said.rows[0].step, 3);
	cr_assert_float_eq(said.rows[0].ratio, 0.5, 0.1);
	cr_assert(said.is_all_scaling);
	cr_assert_not(cw_numerics_is_alarming(&said));
}

Test(numerics, knows_it_where_no_step_is_marked)
{
	const double scale[] = { 8, 8, 8, 8, 4, 4, 4 };

	train(7, scale, 1 << 3, false);
	cr_assert_eq(said.n_rows, 1);
	cr_assert(said.is_all_scaling);
}

/* Of the one step the first call is bad, too, of the other only the second. */
Test(numerics, finds_where_unmarked_steps_begin)
{
	const double scale[] = { 8, 8, 8, 4, 4, 4, 4, 2, 2, 2 };

	train(10, scale, 1 << 2, false);
	for (uint32_t i = 0; i < job.n_samples; i++)
		if (samples[i].seq == 14)
			samples[i].infs = 1;
	judge();
	cr_assert_eq(said.n_rows, 2);
	cr_assert_eq(said.rows[0].n_steps, 1);
	cr_assert_eq(said.rows[1].n_steps, 1);
	cr_assert(said.is_all_scaling);
}

/* The scale grows, that is too much, and it is as before. */
Test(numerics, knows_a_scale_that_fell_back_to_where_it_was)
{
	const double scale[] = { 8, 8, 8, 16, 8, 8, 8 };

	train(7, scale, 1 << 3, true);
	cr_assert(said.is_all_scaling);
	cr_assert_float_eq(said.rows[0].ratio, 0.5, 0.1);
}

/* Of the bad step nothing is left to compare with. */
Test(numerics, holds_it_against_the_step_before_where_all_is_nan)
{
	const double scale[] = { 8, 8, 8, 8, 4, 4, 4 };

	train(7, scale, 1 << 3, true);
	for (uint32_t i = 0; i < job.n_samples; i++)
		if (samples[i].nans)
			samples[i].nans = ELEMENTS;
	judge();
	cr_assert(said.is_all_scaling);
}

Test(numerics, knows_two_steps_in_a_row_by_two_back_offs)
{
	const double scale[] = { 8, 8, 8, 8, 4, 2, 2 };

	train(7, scale, 3 << 3, true);
	cr_assert(said.is_all_scaling);
	cr_assert_eq(said.rows[0].n_steps, 2);
}

Test(numerics, three_steps_in_a_row_are_no_loss_scaling)
{
	const double scale[] = { 8, 8, 8, 8, 4, 2, 1, 1 };

	train(8, scale, 7 << 3, true);
	cr_assert_not(said.is_all_scaling);
	cr_assert(cw_numerics_is_alarming(&said));
}

Test(numerics, without_back_off_it_is_no_loss_scaling)
{
	const double scale[] = { 8, 8, 8, 8, 8, 8, 8 };

	train(7, scale, 1 << 3, true);
	cr_assert_not(said.is_all_scaling);
}

Test(numerics, at_the_end_it_cannot_be_told)
{
	const double scale[] = { 8, 8, 8, 8, 4, 4, 4 };

	train(7, scale, 1 << 6, true);
	cr_assert_not(said.is_all_scaling);
	cr_assert_eq(said.rows[0].ratio, 0);
}

Test(numerics, weights_are_no_gradients)
{
	const double scale[] = { 8, 8, 8, 8, 4, 4, 4 };

	train(7, scale, 1 << 3, true);
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].kind = CW_OP_BROADCAST;
	judge();
	cr_assert_not(said.is_all_scaling);
}

Test(numerics, bad_numbers_that_were_sent_are_never_explained)
{
	const double scale[] = { 8, 8, 8, 8, 4, 4, 4 };
	struct cw_numerics_sample *l = add(0, 1, 1, false, 1);

	l->kind = CW_OP_SEND;
	l->infs = 1;
	train(7, scale, 1 << 3, true);
	cr_assert_not(said.is_all_scaling);
}

/* ---- head-room ---- */

Test(numerics, warns_of_growth_before_it_overflows)
{
	double v = 65504 / 4.0 / pow(1.3, 20);
	uint32_t from;

	for (int s = 0; s < 20; s++, v *= 1.3)
		call(0, (uint64_t)s + 1, s, v);
	judge();
	cr_assert_eq(said.n_headroom, 1);
	cr_assert_float_eq(said.headroom[0].growth, 1.3, 1e-6);
	cr_assert_lt(said.headroom[0].warned_step, 15);
	cr_assert_lt(said.headroom[0].steps_left, 2);
	from = job.n_samples;
	call(0, 21, 20, 65504);
	spoil(from, false);
	judge();
	cr_assert_eq(said.n_headroom, 1, "an infinity does not take the warning back");
}

Test(numerics, adds_up_what_the_members_feed_a_sum)
{
	double v = 65504 / 4.0 / pow(1.2, 10);

	for (int s = 0; s < 10; s++, v *= 1.2)
		for (uint32_t r = 0; r < RANKS; r++)
			add(r, 0, (uint64_t)s + 1, false, r ? v : 1.5 * v);
	judge();
	cr_assert_eq(said.n_headroom, 1);
	cr_assert(said.headroom[0].is_sum);
	cr_assert_eq(samples[said.headroom[0].sample].rank, 0, "the largest part is rank 0's");
	cr_assert_float_eq(said.headroom[0].value, 4.5 * v / 1.2, 1);
}

Test(numerics, growth_of_a_wide_type_is_far_from_its_end)
{
	double v = 1;

	for (int s = 0; s < 30; s++, v *= 1.3)
		call(0, (uint64_t)s + 1, s, v);
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].dtype = CW_DTYPE_BF16;
	judge();
	cr_assert_eq(said.n_headroom, 0);
}

Test(numerics, a_loss_scale_that_doubles_is_no_growth)
{
	double scale = 16;

	for (int s = 0; s < 90; s++) {
		if (s % 8 == 7)
			scale *= 2;
		if (scale > 8192)
			scale /= 2;
		for (unsigned k = 0; k < 2; k++)
			call(0, (uint64_t)(s * 2) + k + 1, s,
			     scale * (1 + k) * (1 + 0.05 * (s * 7 % 3)));
	}
	judge();
	cr_assert_eq(said.n_headroom, 0);
}

Test(numerics, noise_is_no_growth)
{
	uint64_t x = 1;

	for (int s = 0; s < 400; s++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		call(0, (uint64_t)s + 1, s, 8000 * (1 + (double)(x >> 40) / (1 << 24)));
	}
	judge();
	cr_assert_eq(said.n_headroom, 0);
}

/* ---- the ends of a type ---- */

/* So many steps of an all_gather, all samples with those shares. */
static void steps_at_ends(unsigned n, unsigned dtype, double most, double at_limit, double denormal)
{
	for (unsigned s = 0; s < n; s++)
		call(0, job.n_samples / (2 * RANKS) + 1, s, 1);
	for (uint32_t i = 0; i < job.n_samples; i++) {
		samples[i].kind = CW_OP_ALL_GATHER;
		samples[i].dtype = (uint8_t)dtype;
		samples[i].redop = CW_REDOP_NONE;
		samples[i].abs_max = most;
		samples[i].abs_min = most / 1e6;
		samples[i].at_limit = (float)at_limit;
		samples[i].denormal = (float)denormal;
	}
}

Test(numerics, eight_bits_that_are_cut_off_are_told)
{
	steps_at_ends(3, CW_DTYPE_FP8_E4M3, 448, 0.03, 0);
	samples[2 * 2 * RANKS + 2].at_limit = 0.07F; /* rank 2's newest input */
	judge();
	cr_assert_eq(said.n_ranges, 1);
	cr_assert(cw_numerics_is_alarming(&said));
	cr_assert_eq(said.ranges[0].end, CW_NUMERICS_UPPER);
	cr_assert_eq(samples[said.ranges[0].sample].rank, 2);
	cr_assert_eq(said.ranges[0].n_steps, 3);
	cr_assert_float_eq(said.ranges[0].share, 0.07, 1e-6);
}

Test(numerics, what_a_scale_leaves_at_the_limit_is_healthy)
{
	steps_at_ends(9, CW_DTYPE_FP8_E4M3, 448, 0.009, 0);
	judge();
	cr_assert_eq(said.n_ranges, 0, "below the share");
	setup();
	steps_at_ends(2, CW_DTYPE_FP8_E4M3, 448, 0.5, 0);
	judge();
	cr_assert_eq(said.n_ranges, 0, "two steps");
	setup();
	steps_at_ends(9, CW_DTYPE_FP8_E4M3, 448, 1, 0);
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].abs_min = 448;
	judge();
	cr_assert_eq(said.n_ranges, 0, "a constant");
	setup();
	steps_at_ends(9, CW_DTYPE_FP32, 0x1.fffffep127, 0.9, 0);
	judge();
	cr_assert_eq(said.n_ranges, 0, "a mask's value");
}

Test(numerics, a_share_at_the_limit_must_last_until_now)
{
	steps_at_ends(9, CW_DTYPE_FP8_E4M3, 448, 0.5, 0);
	for (uint32_t i = 8 * 2 * RANKS; i < job.n_samples; i++)
		samples[i].at_limit = 0;
	judge();
	cr_assert_eq(said.n_ranges, 0);
}

Test(numerics, numbers_among_the_denormal_ones_are_told)
{
	steps_at_ends(5, CW_DTYPE_FP16, 0x1p-10, 0, 0.3);
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].zeros = 400; /* of a thousand: too few are left to say */
	judge();
	cr_assert_eq(said.n_ranges, 0);
	for (uint32_t i = 0; i < job.n_samples; i++) {
		samples[i].elements = samples[i].offered = 10000;
		samples[i].zeros = 4500;
	}
	judge();
	cr_assert_eq(said.n_ranges, 1);
	cr_assert_eq(said.ranges[0].end, CW_NUMERICS_LOWER);
	cr_assert_float_eq(said.ranges[0].share, 0.3 / 0.55, 1e-6, "of what is not zero");
	cr_assert_float_eq(said.ranges[0].room, 65504 * 0x1p10, 1);
}

Test(numerics, where_no_scale_helps_nothing_is_said_of_denormal_ones)
{
	steps_at_ends(5, CW_DTYPE_FP16, 4095, 0, 0.9);
	judge();
	cr_assert_eq(said.n_ranges, 0, "a factor of 15.996 is none");
	setup();
	steps_at_ends(5, CW_DTYPE_FP16, 2000, 0, 0.9);
	judge();
	cr_assert_eq(said.n_ranges, 1);
	for (uint32_t i = 0; i < job.n_samples; i++) {
		samples[i].kind = CW_OP_ALL_REDUCE;
		samples[i].redop = CW_REDOP_SUM;
	}
	judge();
	cr_assert_eq(said.n_ranges, 0, "four members' sum");
}

/* ---- replicas ---- */

Test(numerics, says_which_members_agree)
{
	call(0, 1, -1, 1);
	samples[RANKS + 2].checksum ^= 1; /* rank 2's output */
	judge();
	cr_assert_eq(said.n_divergences, 1);
	cr_assert_eq(said.divergences[0].n_groups, 2);
	cr_assert_eq(said.divergences[0].n_odd, 1);
	cr_assert(said.divergences[0].has_majority);
	cr_assert_eq(samples[said.divergences[0].sample].rank, 2);
	cr_assert_eq(said.divergences[0].count, RANKS);
	cr_assert_eq(said.n_suspects, 0, "one difference says nothing of a device");
}

Test(numerics, suspects_who_is_odd_in_different_groups)
{
	for (uint32_t c = 0; c < 2; c++) {
		uint32_t from = job.n_samples;

		call(c, 1, -1, 1);
		for (uint32_t i = from; i < job.n_samples; i++)
			if (samples[i].rank == 2 && samples[i].is_output)
				samples[i].checksum ^= 1;
	}
	judge();
	cr_assert_eq(said.n_suspects, 1);
	cr_assert_eq(said.suspects[0].rank, 2);
	cr_assert_eq(said.suspects[0].n_comms, 2);
}

Test(numerics, two_have_no_majority)
{
	for (uint32_t c = 0; c < 2; c++) {
		add(0, c, 1, true, 1);
		add(1, c, 1, true, 1)->checksum ^= 1;
	}
	judge();
	cr_assert_eq(said.n_divergences, 2);
	cr_assert_not(said.divergences[0].has_majority);
	cr_assert_eq(said.n_suspects, 0);
}

Test(numerics, compares_only_what_has_replicas)
{
	call(0, 1, -1, 1);
	for (uint32_t i = 0; i < job.n_samples; i++) {
		samples[i].kind = CW_OP_REDUCE_SCATTER;
		samples[i].checksum = i;
		samples[i].mean = 1;
		if (samples[i].is_output)
			samples[i].elements = samples[i].offered = ELEMENTS / RANKS;
	}
	judge();
	cr_assert_eq(said.n_divergences, 0);
	cr_assert_eq(said.n_replicas_checked, 0);
}

Test(numerics, compares_samples_only_of_the_same_positions)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		struct cw_numerics_sample *l = add(r, 0, 1, true, 1);

		l->elements /= 2;
		l->stride = r < 2 ? 2 : 3;
		l->checksum = r < 2 ? 7 : 8;
	}
	judge();
	cr_assert_eq(said.n_replicas_checked, 1);
	cr_assert_eq(said.n_divergences, 0);
	for (uint32_t r = 0; r < RANKS; r++)
		samples[r].stride = 0; /* an older agent does not say */
	judge();
	cr_assert_eq(said.n_replicas_checked, 0);
}

/* A sum on ranks 0 and 1 with one device, 2 and 3 with another, which got another result. */
static void sum_on_unlike_devices(uint32_t comm, uint64_t seq)
{
	uint32_t from = job.n_samples;

	call(comm, seq, -1, 1);
	for (uint32_t r = 0; r < RANKS; r++) {
		ranks[r].device = r < 2 ? "A" : "B";
		ranks[r].nccl = 22703;
	}
	for (uint32_t i = from; i < job.n_samples; i++)
		if (samples[i].is_output && samples[i].rank >= 2)
			samples[i].checksum ^= 1;
}

Test(numerics, sums_that_differ_where_devices_do_are_no_alarm)
{
	uint32_t of[2] = { 0, 0 };

	sum_on_unlike_devices(0, 1);
	sum_on_unlike_devices(1, 1);
	judge();
	cr_assert_eq(said.n_divergences, 0);
	cr_assert_eq(said.n_roundings, 2);
	cr_assert_not(cw_numerics_is_alarming(&said));
	cr_assert_eq(said.roundings[1].n_groups, 2);
	cr_assert_eq(said.roundings[1].count, RANKS);
	for (uint32_t i = 0; i < RANKS; i++) {
		uint32_t rank = samples[said.divergent[said.roundings[1].first + i]].rank;

		of[i / 2] |= 1u << rank;
	}
	cr_assert(of[0] + of[1] == 15 && (of[0] == 3 || of[0] == 12), "group by group");
}

Test(numerics, who_rounds_otherwise_is_no_suspect)
{
	for (uint32_t c = 0; c < 2; c++) {
		sum_on_unlike_devices(c, 1);
		for (uint32_t i = c * 2 * RANKS; i < job.n_samples; i++)
			if (samples[i].is_output)
				samples[i].checksum = samples[i].rank == 0;
	}
	ranks[1].device = "B";
	judge();
	cr_assert_eq(said.n_roundings, 2);
	cr_assert_eq(said.n_suspects, 0);
	ranks[1].device = "A";
	judge();
	cr_assert_eq(said.n_divergences, 2);
	cr_assert_eq(said.divergences[0].n_groups, 2, "whatever their devices");
	cr_assert_eq(said.n_suspects, 1, "it has the other's device");
}

static void like_devices_differ(struct cw_numerics_sample *l)
{
	if (l->rank == 1)
		l->checksum ^= 2;
}

static void one_device_is_unknown(struct cw_numerics_sample *l)
{
	ranks[3].device = "";
}

static void an_agent_is_older(struct cw_numerics_sample *l)
{
	ranks[0].device = NULL;
}

static void devices_are_alike(struct cw_numerics_sample *l)
{
	ranks[l->rank].device = "A";
}

static void nccl_is_older(struct cw_numerics_sample *l)
{
	ranks[2].nccl = 22605;
}

static void nccl_is_unknown(struct cw_numerics_sample *l)
{
	ranks[2].nccl = 0;
}

static void is_moved(struct cw_numerics_sample *l)
{
	l->kind = CW_OP_ALL_GATHER;
	l->redop = CW_REDOP_NONE;
}

static void is_handed_out(struct cw_numerics_sample *l)
{
	l->kind = CW_OP_BROADCAST; /* regardless of its claimed operator */
}

static void is_of_integers(struct cw_numerics_sample *l)
{
	l->dtype = CW_DTYPE_INT32;
}

static void is_of_doubles(struct cw_numerics_sample *l)
{
	l->dtype = CW_DTYPE_FP64;
}

static void is_average(struct cw_numerics_sample *l)
{
	l->redop = CW_REDOP_AVG;
}

static void is_maximum(struct cw_numerics_sample *l)
{
	l->redop = CW_REDOP_MAX;
}

static void is_forgotten(struct cw_numerics_sample *l)
{
	if (l->rank == 2)
		l->redop = CW_REDOP_NONE;
}

/* By more than two roundings to the type and four of each sum in fp32. */
static void one_is_larger(struct cw_numerics_sample *l)
{
	l->abs_max = l->rank == 2 ? 1.01 : 1;
}

static void a_norm_is_larger(struct cw_numerics_sample *l)
{
	l->l2 = l->rank == 3 ? 1e30 : 1;
}

static void one_has_a_nan(struct cw_numerics_sample *l)
{
	l->nans = l->rank == 2;
}

static void one_is_infinite(struct cw_numerics_sample *l)
{
	l->infs = l->rank == 2;
}

/* Changes after which a difference is no rounding any more. */
Test(numerics, whatever_cannot_be_rounding_is_an_alarm)
{
	static const struct {
		void (*change)(struct cw_numerics_sample *l);
		const char *name;
	} cases[] = {
		{ like_devices_differ, "like devices" },
		{ one_device_is_unknown, "unknown device" },
		{ an_agent_is_older, "older agent" },
		{ devices_are_alike, "all alike" },
		{ nccl_is_older, "older NCCL" },
		{ nccl_is_unknown, "unknown NCCL" },
		{ is_moved, "all_gather" },
		{ is_handed_out, "broadcast" },
		{ is_of_integers, "integers" },
		{ is_of_doubles, "doubles" },
		{ is_average, "average" },
		{ is_maximum, "maximum" },
		{ is_forgotten, "operator not known" },
		{ one_is_larger, "one is larger" },
		{ a_norm_is_larger, "one has a larger norm" },
		{ one_has_a_nan, "one has a NaN" },
		{ one_is_infinite, "one is infinite" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup();
		sum_on_unlike_devices(0, 1);
		for (uint32_t k = 0; k < job.n_samples; k++)
			cases[i].change(&samples[k]);
		judge();
		cr_expect_eq(said.n_roundings, 0, "%s", cases[i].name);
		cr_expect_eq(said.n_divergences, 1, "%s", cases[i].name);
		cr_expect(cw_numerics_is_alarming(&said), "%s", cases[i].name);
	}
}

Test(numerics, roundings_take_no_place_of_what_alarms)
{
	for (uint64_t s = 1; s <= 2 * CW_NUMERICS_MAX; s++)
		sum_on_unlike_devices(0, s);
	for (uint32_t i = job.n_samples - RANKS; i < job.n_samples; i++)
		samples[i].redop = CW_REDOP_MAX;
	judge();
	cr_assert_eq(said.n_divergences, 1);
	cr_assert_eq(said.divergences[0].seq, 2 * CW_NUMERICS_MAX);
	cr_assert_eq(said.n_roundings, CW_NUMERICS_MAX);
	cr_assert_eq(said.n_roundings_over_limit, CW_NUMERICS_MAX - 1);
}

/* ---- conservation ---- */

Test(numerics, a_sum_that_lost_an_element_is_told)
{
	call(0, 1, -1, 1);
	for (uint32_t i = 0; i < job.n_samples; i++) {
		samples[i].dtype = CW_DTYPE_FP32;
		if (samples[i].is_output)
			samples[i].mean = 3.9; /* 100 of 4,000 are missing, everywhere alike */
	}
	judge();
	cr_assert_eq(said.n_divergences, 0);
	cr_assert_eq(said.n_imbalances, 1);
	cr_assert_float_eq(said.imbalances[0].in, 4000, 1e-9);
	cr_assert_float_eq(said.imbalances[0].out, 3900, 1e-9);
	cr_assert_lt(said.imbalances[0].bound, 0.01);
}

Test(numerics, rounding_is_within_the_bound)
{
	call(0, 1, -1, 1);
	for (uint32_t i = 0; i < job.n_samples; i++)
		if (samples[i].is_output)
			samples[i].mean = 4 * (1 + 0x1p-11); /* half a unit, each */
	judge();
	cr_assert_eq(said.n_imbalances, 0);
	cr_assert_eq(said.n_sums_checked, 1);
}

Test(numerics, integers_are_held_exactly_until_they_wrap)
{
	call(0, 1, -1, 3);
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].dtype = CW_DTYPE_INT32;
	judge();
	cr_assert_eq(said.n_imbalances, 0);
	for (uint32_t i = 0; i < job.n_samples; i++)
		if (samples[i].is_output)
			samples[i].mean += 1.0 / ELEMENTS;
	judge();
	cr_assert_eq(said.n_imbalances, 1);
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].abs_max = 0x1p30;
	judge();
	cr_assert_eq(said.n_sums_checked, 0);
}

Test(numerics, averages_are_divided_and_maxima_left_alone)
{
	call(0, 1, -1, 2);
	for (uint32_t i = 0; i < job.n_samples; i++) {
		samples[i].redop = CW_REDOP_AVG;
		samples[i].mean = 2;
	}
	judge();
	cr_assert_eq(said.n_imbalances, 0);
	cr_assert_eq(said.n_sums_checked, 1);
	for (uint32_t i = 0; i < job.n_samples; i++)
		samples[i].redop = CW_REDOP_MAX;
	judge();
	cr_assert_eq(said.n_sums_checked, 0);
}
