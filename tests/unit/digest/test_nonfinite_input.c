/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/nonfinite_input.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/support/record/record_writer.h"

Test(nonfinite_input, first_that_is_no_number_is_found_once)
{
	struct cw_test_record *rec = cw_test_record_new();
	int comm = cw_test_record_comm(rec, 0x77, 4, 2);
	struct cw_nonfinite_input nonfinite_input = { 0 };
	struct cw_record *reader;
	char text[256];

	(void)snprintf(rec->comms[comm].name, sizeof(rec->comms[comm].name), "dp");
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);

	cr_assert_not(cw_nonfinite_input_find(&nonfinite_input, reader, 5));
	rec->header->has |= CW_REC_HAS_SUMMARIES;
	rec->summaries[1] = (struct cw_rec_summary){
		.publish = 9,
		.op_index = 40,
		.seq = 39,
		.comm = (uint32_t)comm,
		.comm_generation = rec->comms[comm].generation,
		.kind = CW_OP_ALL_REDUCE,
		.dtype = CW_DTYPE_BF16,
		.elements = 256,
		.nans = 12,
		.l2 = NAN,
	};
	cr_assert_eq(cw_record_refresh(reader), 0);
	cr_assert(cw_nonfinite_input_find(&nonfinite_input, reader, 5));
	cr_assert_eq(nonfinite_input.seen_ns, 5);
	cr_assert_eq(nonfinite_input.comm_id, 0x77);
	cr_assert_eq(nonfinite_input.tensor_stats.l2, 0,
		     "what comes from a stranger and is no number");
	cw_nonfinite_input_format(&nonfinite_input, 3, text, sizeof(text));
	cr_assert_str_eq(text, "rank 3 fed 12 NaN and 0 Inf among 256 bf16 into all_reduce #39 "
			       "on dp");
	cr_assert_not(cw_nonfinite_input_find(&nonfinite_input, reader, 6));
	cr_assert_eq(nonfinite_input.seen_ns, 5);
	cw_record_close(reader);
	cw_test_record_free(rec);
}
