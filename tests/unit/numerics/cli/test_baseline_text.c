/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `baseline check`. */
#include "numerics/cli/baseline_text.h"

#include <criterion/criterion.h>
#include <string.h>

#include "model/op.h"

static struct baseline_rank rank;
static char text[BASELINE_TEXT_BYTES_MAX];

static void op(struct baseline_op *to, double absmax)
{
	*to = (struct baseline_op){ .is_there = true,
				    .row = { .unit = CW_BASELINE_UNIT_ROW | CW_BASELINE_HAS_IN,
					     .kind = CW_OP_ALL_REDUCE,
					     .dtype = CW_DTYPE_BF16,
					     .redop = CW_REDOP_SUM,
					     .seq = 16,
					     .step_plus_1 = 6,
					     .root_or_peer = -1 },
				    .comm = { .id = 7, .nranks = 8, .name = "dp" },
				    .site = "train.py:88 in backward" };
	cw_baseline_row_set_count(&to->row, 256);
	cw_baseline_row_set_value(&to->row, CW_BASELINE_IN, CW_BASELINE_ABSMAX, absmax);
}

static void setup(void)
{
	rank = (struct baseline_rank){ .rank = 2 };
	op(&rank.op_a, 2);
	op(&rank.op_b, 2.5);
	rank.said.first = (struct cw_baseline_difference){
		.what = CW_BASELINE_TENSOR_STATS, .a = 2, .b = 2.5, .allowed = 0.04
	};
}

TestSuite(baseline_text, .init = setup);

static void says(const char *what)
{
	cr_expect_str_eq(baseline_text_first(&rank, text, sizeof(text)), what);
}

Test(baseline_text, says_how_far_numbers_are_apart)
{
	says("rank 2: all_reduce #16 on dp (step 5, train.py:88 in backward): input has absmax 2 in "
	     "the baseline, 2.5 here, and may differ by 0.04");
	rank.said.first.what = CW_BASELINE_NONFINITE;
	rank.said.first.side = CW_BASELINE_OUT;
	rank.said.first.a = 0;
	rank.said.first.b = 3;
	says("rank 2: all_reduce #16 on dp (step 5, train.py:88 in backward): output has 0 NaN or "
	     "Inf in the baseline, 3 here");
}

Test(baseline_text, says_which_run_has_a_call_alone)
{
	rank.said.first.what = CW_BASELINE_MISSING;
	rank.op_b.is_there = false;
	rank.op_a.row.step_plus_1 = 0;
	says("rank 2: all_reduce #16 on dp (train.py:88 in backward) is in the baseline, but was "
	     "not called here");
	rank.said.first.what = CW_BASELINE_EXTRA;
	rank.op_b = rank.op_a;
	rank.op_b.is_there = true;
	rank.op_b.site[0] = '\0';
	rank.op_b.comm.name[0] = '\0';
	rank.op_b.row.kind = CW_OP_SEND;
	rank.op_b.row.root_or_peer = 3;
	says("rank 2: send #16 to rank 3 on a nameless communicator of size 8 is not in the baseline");
}

Test(baseline_text, says_how_a_call_is_made_otherwise)
{
	rank.said.first.what = CW_BASELINE_DTYPE;
	rank.op_b.row.dtype = CW_DTYPE_FP16;
	says("rank 2: all_reduce #16 on dp (step 5, train.py:88 in backward): type bf16 in the "
	     "baseline, fp16 here");
}

Test(baseline_text, says_what_a_call_moved)
{
	cr_expect_str_eq(baseline_text_op(&rank.op_a, text, sizeof(text)),
			 "all_reduce #16 on dp  bf16 x 256 sum  in: absmax 2, mean 0, l2 0  out: "
			 "not examined");
	rank.op_a.is_there = false;
	cr_expect_str_eq(baseline_text_op(&rank.op_a, text, sizeof(text)), "no such call");
}

Test(baseline_text, says_how_much_was_checked_and_lost)
{
	struct baseline_job job = { .parts = &rank, .n_parts = 1, .n_ranks = 1, .n_compared = 1 };

	job.sum.n_a = 400;
	job.sum.n_checked = 398;
	job.sum.n_skipped_a = 12;
	job.sum.way = CW_BASELINE_BY_CALL;
	cr_expect_str_eq(baseline_text_coverage(&job, text, sizeof(text)),
			 "checked 398 of 400 ops of 1 of 1 rank, paired by call; 12 in the "
			 "baseline are from before the check");
	rank.a = (struct baseline_part){ .is_there = true, .is_finished = true };
	cr_expect_str_eq(baseline_text_lost(&job, false, text, sizeof(text)), "");
	rank.a.counters[CW_BASELINE_N_LOST_OPS] = 7;
	rank.a.is_finished = false;
	cr_expect_str_eq(baseline_text_lost(&job, false, text, sizeof(text)),
			 "7 calls overwritten before they were read; 1 file without an end");
}
