/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/op_range.h"

#include <string.h>

static bool is_same_group(const struct cw_msg_op *a, const struct cw_msg_op *b)
{
	return (a->flags & b->flags & CW_OPF_GROUPED) && a->group_id == b->group_id;
}

static bool is_within(const struct cw_msg_op *op, uint64_t from_seq, uint64_t to_seq)
{
	return op->coll_seq && op->coll_seq >= from_seq && op->coll_seq <= to_seq;
}

size_t cw_op_range_select(struct cw_msg_op *ops, size_t n, uint64_t from_seq, uint64_t to_seq,
			  size_t max)
{
	size_t kept = 0, end;

	for (size_t i = 0; i < n; i = end) {
		bool wanted = is_within(&ops[i], from_seq, to_seq);

		for (end = i + 1; end < n && is_same_group(&ops[i], &ops[end]); end++)
			wanted |= is_within(&ops[end], from_seq, to_seq);
		if (!wanted)
			continue;
		if (kept + (end - i) > max)
			break;
		memmove(&ops[kept], &ops[i], (end - i) * sizeof(*ops));
		kept += end - i;
	}
	return kept;
}
