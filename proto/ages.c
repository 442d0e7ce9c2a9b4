/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/ages.h"

#include "common/clock.h"

struct cw_msg_op cw_ages_of_op(const struct cw_record_op *op, int64_t now_ns)
{
	return (struct cw_msg_op){
		.op_facts = op->op_facts,
		.enter_age_ns = cw_age_ns(now_ns, op->enter_mono_ns),
		.return_age_ns =
			op->flags & CW_OPF_RETURNED ? cw_age_ns(now_ns, op->return_mono_ns) : 0,
	};
}

struct cw_op cw_ages_to_op(const struct cw_msg_op *from, int64_t at_ns)
{
	struct cw_op op = { .op_facts = from->op_facts }, *to = &op;

	CW_OP_FACTS(CW_FROM_AGES)
	return op;
}
