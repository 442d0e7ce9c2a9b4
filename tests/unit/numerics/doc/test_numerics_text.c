/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `numerics`, sentence by sentence, as people read it. */
#include "numerics/doc/numerics_text.h"

#include <criterion/criterion.h>
#include <string.h>

#include "model/op.h"
#include "record/record_layout.h"

static struct cw_numerics_sample samples[4];
static const struct cw_numerics_comm comms[] = { { .id = 0xabc, .name = "dp", .nranks = 4 },
						 { .id = 0xdef, .name = "", .nranks = 2 } };
static struct cw_numerics_rank ranks[4];
static struct cw_numerics_rank_said said_of[4];
static struct cw_numerics_job job;
static struct cw_numerics_report said;
static char buf[600];

static void setup(void)
{
	for (uint32_t i = 0; i < 4; i++)
		samples[i] = (struct cw_numerics_sample){
			.rank = i,
			.seq = 31,
			.step = -1,
			.elements = 4096,
			.kind = CW_OP_ALL_REDUCE,
			.dtype = CW_DTYPE_FP16,
			.redop = CW_REDOP_SUM,
		};
	for (int32_t i = 0; i < 4; i++)
		ranks[i] = (struct cw_numerics_rank){ .rank = i < 3 ? i : -1 };
	job = (struct cw_numerics_job){ samples, 4, comms, 2, ranks, 4 };
	said = (struct cw_numerics_report){ .ranks = said_of, .n_firsts = 1 };
	for (uint32_t i = 0; i < 4; i++)
		said_of[i] = (struct cw_numerics_rank_said){ .is_first_seen = true };
}

TestSuite(numerics_text, .init = setup);

Test(numerics_text, of_who_was_first)
{
	samples[1].nans = 2;
	samples[1].infs = 1;
	said.firsts[0] = (struct cw_numerics_first){ 1, CW_NUMERICS_BY_RANK };
	cr_expect_str_eq(
		cw_numerics_text_first(&job, &said, 0, buf, sizeof(buf)),
		"rank 1 was the first to feed 2 NaN and 1 Inf among 4096 fp16 into all_reduce "
		"#31 on dp");
	samples[1].step = 812;
	samples[1].site = "backward (train.py:97)";
	said.n_firsts = 2;
	said_of[1].is_first_seen = false;
	cr_expect_str_eq(
		cw_numerics_text_first(&job, &said, 0, buf, sizeof(buf)),
		"rank 1 was among the first to feed 2 NaN and 1 Inf among 4096 fp16 into "
		"all_reduce #31 on dp, step 812, from backward (train.py:97) (some earlier tensors "
		"of this rank are unknown)");
}

Test(numerics_text, of_a_call_that_made_it)
{
	samples[2].infs = 1;
	samples[2].comm = 1;
	said.firsts[0] = (struct cw_numerics_first){ 2, CW_NUMERICS_SUM };
	cr_expect_str_eq(
		cw_numerics_text_first(&job, &said, 0, buf, sizeof(buf)),
		"all_reduce #31 on 0xdef itself made 0 NaN and 1 Inf among 4096 fp16: all members "
		"fed finite numbers, whose sum the type does not hold");
	samples[2].redop = CW_REDOP_NONE;
	cr_expect_not_null(strstr(cw_numerics_text_first(&job, &said, 0, buf, sizeof(buf)),
				  "whose result the type does not hold"));
}

Test(numerics_text, of_a_rank_that_got_it)
{
	samples[3].nans = 1;
	said.firsts[0] = (struct cw_numerics_first){ 3, CW_NUMERICS_RECEIVED };
	cr_expect_str_eq(
		cw_numerics_text_first(&job, &said, 0, buf, sizeof(buf)),
		"a rank without a number got 1 NaN and 0 Inf among 4096 fp16 out of all_reduce #31 "
		"on dp; their source is unknown, because some inputs were not fully inspected");
}

/* A program that does not mark its steps: we know only the number of a call. */
Test(numerics_text, of_a_row_of_calls_names_no_step)
{
	struct cw_numerics_report report;

	for (uint32_t i = 0; i < 4; i++) {
		samples[i].rank = 0;
		samples[i].order = i + 1;
		samples[i].seq = 25 + i;
	}
	samples[2].nans = 1;
	cr_assert_eq(cw_numerics_judge(&job, &report), 0);
	cr_assert_eq(report.n_rows, 1);
	(void)cw_numerics_text_row(&job, &report.rows[0], buf, sizeof(buf));
	cr_expect_null(strstr(buf, "step 27"), "%s", buf);
	cr_expect_not_null(strstr(buf, "1 call with NaN or Inf on dp (from call #27, 1 tensor)"),
			   "%s", buf);
	cw_numerics_report_fini(&report);
}

Test(numerics_text, of_a_row_of_steps)
{
	struct cw_numerics_row row = {
		.step = 7, .n_steps = 1, .n_samples = 1, .is_scaling = true, .ratio = 0.5
	};

	cr_expect_str_eq(
		cw_numerics_text_row(&job, &row, buf, sizeof(buf)),
		"1 step with NaN or Inf on dp (from step 7, 1 tensor): loss scaling, harmless: "
		"gradients are finite again, 0.50 times as large");
	row = (struct cw_numerics_row){ .step = 7, .n_steps = 2, .n_samples = 9, .ratio = 2 };
	cr_expect_str_eq(
		cw_numerics_text_row(&job, &row, buf, sizeof(buf)),
		"2 steps with NaN or Inf on dp (from step 7, 9 tensors): no loss scaling: gradients "
		"are 2.00 times as large afterwards");
	row.n_steps = 3;
	cr_expect_not_null(strstr(cw_numerics_text_row(&job, &row, buf, sizeof(buf)),
				  ": no loss scaling, which leaves no three steps in a row out"));
	row = (struct cw_numerics_row){ .step = 7, .n_steps = 1, .n_samples = 2 };
	cr_expect_not_null(strstr(cw_numerics_text_row(&job, &row, buf, sizeof(buf)),
				  ": unknown whether this is loss scaling"));
}

Test(numerics_text, of_numbers_that_grow)
{
	struct cw_numerics_headroom h = {
		.sample = 1, .value = 60000, .limit = 65504, .growth = 1.05, .steps_left = 2
	};

	cr_expect_str_eq(
		cw_numerics_text_headroom(&job, &h, buf, sizeof(buf)),
		"all_reduce #31 on dp comes near what fp16 holds: 60000 of 65504 on rank 1, "
		"growing 5 % a step, there in 2");
	h.is_sum = true;
	h.steps_left = 0.5;
	samples[1].site = "step (a.py:1)";
	cr_expect_str_eq(
		cw_numerics_text_headroom(&job, &h, buf, sizeof(buf)),
		"all_reduce #31 on dp comes near what fp16 holds: 60000 of 65504 summed up over its "
		"members, most of it on rank 1, growing 5 % a step, there in the next, from step "
		"(a.py:1)");
}

Test(numerics_text, of_the_ends_of_a_type)
{
	struct cw_numerics_range r = {
		.sample = 1, .n_steps = 3, .share = 0.0321, .end = CW_NUMERICS_UPPER, .room = 1
	};

	samples[1].dtype = CW_DTYPE_FP8_E4M3;
	samples[1].abs_max = 448;
	cr_expect_str_eq(
		cw_numerics_text_range(&job, &r, buf, sizeof(buf)),
		"all_reduce #31 on dp is cut off at the largest number of fp8_e4m3: 3.21 % "
		"of the elements of its input are 448, on rank 1, in 3 steps in a row");
	r = (struct cw_numerics_range){
		.sample = 2, .n_steps = 5, .share = 0.7, .end = CW_NUMERICS_LOWER, .room = 4096
	};
	samples[2].is_output = true;
	samples[2].site = "step (a.py:1)";
	cr_expect_str_eq(cw_numerics_text_range(&job, &r, buf, sizeof(buf)),
			 "all_reduce #31 on dp loses digits at the lower end of fp16: 70 % of the "
			 "nonzero elements of its output are denormal, though all could be 4096 "
			 "times as large, on rank 2, in 5 steps in a row, from step (a.py:1)");
}

Test(numerics_text, of_copies_that_differ)
{
	uint32_t divergent[] = { 1, 0, 2 };
	struct cw_numerics_divergence d = { .sample = 1, .count = 3 };

	samples[1].checksum = 7;
	said.divergent = divergent;
	cr_expect_str_eq(
		cw_numerics_text_divergence(&job, &said, &d, buf, sizeof(buf)),
		"all_reduce #31 on dp left different results on its members, which should be equal "
		"bit for bit: rank 1 | ranks 0,2. Silent corruption, or a result written over on "
		"some");
}

Test(numerics_text, of_what_members_run_on_where_copies_differ)
{
	uint32_t divergent[] = { 1, 0, 2 };
	struct cw_numerics_divergence d = { .sample = 1, .count = 3 };

	samples[1].checksum = 7;
	samples[1].site = "step (a.py:1)";
	said.divergent = divergent;
	for (uint32_t i = 0; i < 3; i++) {
		ranks[i].device = i == 1 ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-80GB";
		ranks[i].cuda_driver = i ? 12080 : 12040;
		ranks[i].nccl = 22703;
	}
	cr_expect_str_eq(
		cw_numerics_text_divergence(&job, &said, &d, buf, sizeof(buf)),
		"all_reduce #31 on dp left different results on its members, which should be equal "
		"bit for bit: rank 1 | ranks 0,2. Silent corruption, or a result written over on "
		"some, from step (a.py:1). Its members have unlike devices: NVIDIA A100-SXM4-80GB "
		"(ranks 0,2), NVIDIA H100 80GB HBM3 (rank 1); unlike CUDA drivers: 12.4 (rank 0), "
		"12.8 (ranks 1-2)");
	for (uint32_t i = 0; i < 3; i++)
		ranks[i] = (struct cw_numerics_rank){ .rank = (int32_t)i, .nccl = 22703 - i };
	ranks[2].nccl = 0;
	cr_expect_not_null(strstr(
		cw_numerics_text_divergence(&job, &said, &d, buf, sizeof(buf)),
		"(a.py:1). Its members have unlike versions of NCCL: 2.27.2 (rank 1), 2.27.3 (rank "
		"0), not known (rank 2)"));
}

Test(numerics_text, of_sums_that_differ_where_devices_do)
{
	uint32_t divergent[] = { 1, 0, 2 };
	struct cw_numerics_divergence d = { .sample = 1, .count = 3 };

	samples[1].checksum = 7;
	said.divergent = divergent;
	for (uint32_t i = 0; i < 3; i++)
		ranks[i].device = i == 1 ? "B" : "A";
	cr_expect_str_eq(
		cw_numerics_text_rounding(&job, &said, &d, buf, sizeof(buf)),
		"all_reduce #31 on dp left different results on members with unlike devices: rank 1 "
		"| ranks 0,2. For that no alarm: this NCCL may work such a sum out on each member, and "
		"members with the same device agree. Its members have unlike devices: A (ranks 0,2), "
		"B (rank 1)");
}

Test(numerics_text, of_one_device_that_is_suspect)
{
	struct cw_numerics_suspect s = { .rank = 2, .n_divergences = 1, .n_comms = 1 };

	cr_expect_str_eq(
		cw_numerics_text_suspect(&job, &s, buf, sizeof(buf)),
		"rank 2 has another result than most in 1 call on 1 communicator: suspect its "
		"device and links first");
	s.n_divergences = 9;
	s.n_comms = 2;
	cr_expect_not_null(strstr(cw_numerics_text_suspect(&job, &s, buf, sizeof(buf)),
				  " in 9 calls on 2 communicators: "));
}

Test(numerics_text, of_a_sum_that_is_none)
{
	struct cw_numerics_imbalance m = { .sample = 0, .in = 8, .out = 9.5, .bound = 0.25 };

	cr_expect_str_eq(
		cw_numerics_text_imbalance(&job, &m, buf, sizeof(buf)),
		"all_reduce #31 on dp did not preserve the total: its inputs add up to 8, its result "
		"to 9.5; rounding explains at most 0.25");
}
