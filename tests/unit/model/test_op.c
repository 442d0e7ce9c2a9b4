/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "model/op.h"

static struct cw_op op_of(unsigned kind)
{
	return (struct cw_op){
		.kind = (uint8_t)kind,
		.dtype = CW_DTYPE_NONE,
		.redop = CW_REDOP_NONE,
		.root = CW_PEER_NONE,
		.peer = CW_PEER_NONE,
	};
}

static void expect_format(const struct cw_op *op, const char *expected)
{
	char buf[160];

	cr_expect_str_eq(cw_op_format(op, buf, sizeof(buf)), expected);
}

Test(op, a_call_that_the_record_lost_has_a_name_for_people)
{
	struct cw_op op = op_of(CW_OP_NONE);

	op.coll_seq = 8;
	expect_format(&op, "collective #8");
	cr_expect_str_eq(cw_op_kind_text(CW_OP_NONE), "collective");
	cr_expect_str_eq(cw_op_kind_text(CW_OP_SEND), "send");
}

Test(op, every_kind_name_reads_back_as_its_number)
{
	for (unsigned kind = 0; kind < 256; kind++)
		cr_expect_eq(cw_op_kind_from_name(cw_op_kind_name(kind)), (int)kind, "kind %u",
			     kind);
}

Test(op, kinds_of_newer_agents_have_a_name_with_their_number)
{
	cr_expect_str_eq(cw_op_kind_name(9), "op-9");
	cr_expect_str_eq(cw_op_kind_name(63), "op-63");
	cr_expect_str_eq(cw_op_kind_name(255), "op-255");
	cr_expect_str_eq(cw_op_kind_name(70000), "op-?");
	cr_expect_eq(cw_op_kind_from_name("op-256"), -1);
	cr_expect_eq(cw_op_kind_from_name("all_reduc"), -1);
	cr_expect_eq(cw_op_kind_from_name(""), -1);
}

Test(op, every_dtype_and_redop_name_reads_back)
{
	for (unsigned i = 0; i < CW_DTYPE__MAX; i++) {
		cr_expect_eq(cw_dtype_from_name(cw_dtype_name(i)), (int)i);
		cr_expect_gt(cw_dtype_bytes(i), 0u);
	}
	for (unsigned i = 0; i < CW_REDOP__MAX; i++)
		cr_expect_eq(cw_redop_from_name(cw_redop_name(i)), (int)i);
	cr_expect_eq(cw_dtype_from_name("none"), CW_DTYPE_NONE);
	cr_expect_eq(cw_redop_from_name("none"), CW_REDOP_NONE);
	cr_expect_eq(cw_dtype_from_name("fp31"), -1);
	cr_expect_eq(cw_redop_from_name("add"), -1);
	cr_expect_str_eq(cw_dtype_name(99), "dtype-?");
	cr_expect_eq(cw_dtype_bytes(99), 0u);
	cr_expect_eq(cw_dtype_bytes(CW_DTYPE_BF16), 2u);
	cr_expect_eq(cw_dtype_bytes(CW_DTYPE_FP64), 8u);
}

Test(op, formats_a_reduction)
{
	struct cw_op op = op_of(CW_OP_ALL_REDUCE);

	op.coll_seq = 40213;
	op.dtype = CW_DTYPE_BF16;
	op.count = 1048576;
	op.redop = CW_REDOP_SUM;
	expect_format(&op, "all_reduce #40213 bf16 x 1048576 sum");
}

Test(op, formats_a_root)
{
	struct cw_op op = op_of(CW_OP_BROADCAST);

	op.coll_seq = 7;
	op.dtype = CW_DTYPE_FP32;
	op.count = 12;
	op.root = 3;
	expect_format(&op, "broadcast #7 fp32 x 12 root 3");
}

Test(op, formats_point_to_point)
{
	struct cw_op op = op_of(CW_OP_SEND);

	op.p2p_seq = 4;
	op.dtype = CW_DTYPE_INT64;
	op.count = 10;
	op.peer = 2;
	expect_format(&op, "send #4 int64 x 10 to 2");
	op.kind = CW_OP_RECV;
	expect_format(&op, "recv #4 int64 x 10 from 2");
}

Test(op, formats_host_calls_by_name_alone)
{
	struct cw_op op = op_of(CW_OP_COMM_INIT);

	expect_format(&op, "comm_init");
	op.kind = CW_OP_GROUP_END;
	expect_format(&op, "group_end");
}

Test(op, format_stays_inside_the_buffer)
{
	struct cw_op op = op_of(CW_OP_ALL_REDUCE);
	char buf[16];

	memset(buf, 'x', sizeof(buf));
	op.coll_seq = 40213;
	cw_op_format(&op, buf, 8);
	cr_expect_str_eq(buf, "all_red");
	cr_expect_eq(buf[8], 'x');
}
