/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "model/signature.h"
#include "model/snapshot.h"

Test(signature, differs_in_everything_a_reduction_is_made_of)
{
	uint64_t s =
		cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM, CW_PEER_NONE, 100, 400);

	cr_expect_neq(s, cw_signature(CW_OP_REDUCE_SCATTER, CW_DTYPE_FP32, CW_REDOP_SUM,
				      CW_PEER_NONE, 100, 400));
	cr_expect_neq(s, cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_INT32, CW_REDOP_SUM, CW_PEER_NONE,
				      100, 400));
	cr_expect_neq(s, cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_MAX, CW_PEER_NONE,
				      100, 400));
	cr_expect_neq(s, cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM, 0, 100, 400));
	cr_expect_neq(s, cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM, CW_PEER_NONE,
				      101, 400));
	cr_expect_eq(
		s,
		cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM, CW_PEER_NONE, 100, 404),
		"bytes follow from dtype and count");
}

Test(signature, ops_that_only_move_bytes_compare_by_bytes)
{
	static const unsigned kinds[] = { CW_OP_ALL_GATHER, CW_OP_BROADCAST, CW_OP_ALL_TO_ALL,
					  CW_OP_GATHER, CW_OP_SCATTER };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t fp32 = cw_signature(kinds[i], CW_DTYPE_FP32, CW_REDOP_NONE, 0, 100, 400);
		uint64_t bf16 = cw_signature(kinds[i], CW_DTYPE_BF16, CW_REDOP_SUM, 0, 200, 400);
		uint64_t less = cw_signature(kinds[i], CW_DTYPE_FP32, CW_REDOP_NONE, 0, 99, 396);

		cr_expect_eq(fp32, bf16, "kind %u", kinds[i]);
		cr_expect_neq(fp32, less, "kind %u", kinds[i]);
	}
}

Test(signature, history_depends_on_order_between_commits_but_not_inside_one)
{
	uint64_t a = cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM, -1, 1, 4);
	uint64_t b = cw_signature(CW_OP_BROADCAST, CW_DTYPE_FP32, CW_REDOP_NONE, 0, 1, 4);
	uint64_t ab = cw_hash_commit(cw_hash_commit(CW_HASH_INIT, a), b);
	uint64_t ba = cw_hash_commit(cw_hash_commit(CW_HASH_INIT, b), a);

	cr_expect_neq(ab, ba);
	cr_expect_eq(cw_hash_commit(CW_HASH_INIT, a + b), cw_hash_commit(CW_HASH_INIT, b + a));
	cr_expect_neq(cw_hash_commit(CW_HASH_INIT, a + b), ab, "a grouping is another step");
}

/* As in what NCCL's profiler and torch's Flight Recorder tell. */
Test(signature, tells_all_types_apart_where_no_operator_is_known)
{
	for (unsigned a = 0; a < CW_DTYPE__MAX; a++)
		for (unsigned b = 0; b < a; b++)
			cr_expect_neq(cw_signature(CW_OP_ALL_REDUCE, a, CW_REDOP_NONE, CW_PEER_NONE,
						   100, 400),
				      cw_signature(CW_OP_ALL_REDUCE, b, CW_REDOP_NONE, CW_PEER_NONE,
						   100, 400),
				      "%u and %u", a, b);
}

/* Agents of different versions compare hashes: the function is part of the wire format. */
Test(signature, values_are_frozen)
{
	uint64_t s =
		cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_BF16, CW_REDOP_SUM, -1, 1048576, 2097152);

	cr_expect_eq(cw_hash_mix64(0), UINT64_C(0xe220a8397b1dcdaf));
	cr_expect_eq(s, UINT64_C(0x204ee04d7643ea7c), "%#lx", s);
	cr_expect_eq(cw_hash_commit(CW_HASH_INIT, s), UINT64_C(0x6d23f98d6fbd830c), "%#lx",
		     cw_hash_commit(CW_HASH_INIT, s));
}

Test(signature, newest_checkpoints_are_told_once_and_reach_far_back)
{
	static const uint64_t told[] = { 9000, 8992, 8960, 8896, 8704, 8192, 4096 };
	struct cw_checkpoint kept[CW_CHECKPOINTS_KEPT] = { 0 };
	struct cw_checkpoint ret[2 * CW_CHECKPOINT_LEVELS];
	size_t n;

	cr_assert_eq(cw_checkpoints_newest(kept, ret), 0, "none is kept yet");
	for (uint64_t seq = 1; seq <= 9005; seq++) {
		int slot = cw_checkpoint_slot(seq - 1, seq);

		if (slot >= 0)
			kept[slot] = (struct cw_checkpoint){ .coll_seq = seq, .hash = ~seq };
	}
	n = cw_checkpoints_newest(kept, ret);
	cr_assert_eq(n, sizeof(told) / sizeof(*told), "%zu", n);
	for (size_t i = 0; i < n; i++) {
		cr_expect_eq(ret[i].coll_seq, told[i]);
		cr_expect_eq(ret[i].hash, ~told[i]);
	}
}
