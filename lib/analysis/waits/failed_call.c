/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/waits/failed_call.h"

#include "analysis/align/position.h"
#include "model/nccl_result.h"
#include "record/record_layout.h"

static bool is_making(unsigned kind)
{
	return kind == CW_OP_COMM_INIT || kind == CW_OP_COMM_GROW;
}

/*
 * A failed call of a member keeps a gate shut in one of two cases. First, the member left its
 * communicator before the communicator existed. Then the call that makes the communicator has
 * failed, unless the member gave the communicator up without an error. Second, all members have to
 * make the gate's host call, and the member's newest call is of this kind and has failed.
 */
bool failed_call_at(const struct cw_snapshot *snap, const struct gate *gate, uint32_t member,
		    struct failed_call *ret)
{
	const struct cw_snap_member *m = &snap->comms[gate->comm].members[member];
	const struct cw_op *op = m->last;

	if (position_of(snap, m).flags & POS_UNMADE) {
		if (!op || !is_making(op->kind))
			op = NULL;
		for (uint32_t i = 0; i < m->n_window && !op; i++)
			if (is_making(m->window[i].kind))
				op = &m->window[i];
		*ret = (struct failed_call){ .kind = CW_OP_COMM_INIT,
					     .result = m->async_error ? m->async_error
								      : m->last_result,
					     .text = m->last_error };
		if (op && position_has_failed(op)) {
			ret->kind = op->kind;
			ret->result = op->result;
			ret->ns = op->return_ns;
		} else if (m->last) {
			/*
			 * The newest call destroys or aborts the comm, so it came after the
			 * failure.
			 */
			ret->ns = m->last->enter_ns;
		}
		return m->state == CW_COMM_FAILED ||
		       (ret->result && ret->result != CW_NCCL_IN_PROGRESS);
	}
	/*
	 * We compare with the call of the rank that has waited longest. If this member's failed
	 * call is older, the same call may have failed on all members. Their programs then went on,
	 * and the other members wait in a later call.
	 */
	if (gate->kind != GATE_HOST || !op || op->kind != gate->op_kind ||
	    !position_has_failed(op) || (gate->op && op->op_index < gate->op->op_index))
		return false;
	*ret = (struct failed_call){
		.kind = op->kind, .result = op->result, .ns = op->return_ns, .text = m->last_error
	};
	return true;
}
