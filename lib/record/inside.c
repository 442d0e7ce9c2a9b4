/* SPDX-License-Identifier: Apache-2.0 */
#include "record/inside.h"

#include "model/op.h"

bool cw_rec_may_be_inside(uint32_t comm_flags, uint64_t op_index, uint64_t op_returned)
{
	return op_returned < op_index && !(comm_flags & CW_REC_COMM_PROFILER);
}

static bool is_open(const struct cw_rec_op *op)
{
	return op->tid && op->enter_ns && !op->return_ns &&
	       !(op->flags & (CW_OPF_RETURNED | CW_OPF_QUEUED));
}

static bool is_newest_of_thread(const struct cw_rec_op *ops, size_t n_ops,
				const struct cw_rec_op *op)
{
	for (size_t i = 0; i < n_ops; i++)
		if (ops[i].tid == op->tid && ops[i].op_index > op->op_index)
			return false;
	return true;
}

size_t cw_rec_inside_add(const struct cw_rec_op *ops, size_t n_ops, struct cw_rec_wait *calls,
			 size_t n, size_t max)
{
	for (size_t i = 0; i < n_ops; i++) {
		const struct cw_rec_op *op = &ops[i];
		size_t at = 0;

		if (!is_open(op) || !is_newest_of_thread(ops, n_ops, op))
			continue;
		while (at < n && calls[at].tid != op->tid)
			at++;
		if (at == max)
			continue;
		if (at == n)
			calls[n++] = (struct cw_rec_wait){ .tid = op->tid };
		if (calls[at].since_ns < op->enter_ns)
			calls[at].since_ns = op->enter_ns;
	}
	return n;
}
