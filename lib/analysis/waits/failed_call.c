/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/waits/failed_call.h"

#include "analysis/align/position.h"
#include "model/nccl_result.h"
#include "record/record_layout.h"

static bool is_making(unsigned kind)
{
	return kind == CW_OP_COMM_INIT || kind == CW_OP_COMM_GROW;
}

/* The making of the member's comm, where the record still holds it; NULL. */
static const struct cw_op *making_of(const struct cw_snap_member *m)
{
	if (m->last && is_making(m->last->kind))
		return m->last;
	for (uint32_t i = 0; i < m->n_window; i++)
		if (is_making(m->window[i].kind))
			return &m->window[i];
	return NULL;
}

/* A communicator that its member gave up in silence has no error: that is another matter. */
static bool find_making(const struct cw_snap_member *m, struct failed_call *ret)
{
	const struct cw_op *op = making_of(m);

	*ret = (struct failed_call){ .kind = CW_OP_COMM_INIT,
				     .result = m->async_error ? m->async_error : m->last_result,
				     .text = m->last_error };
	if (op && position_has_failed(op)) {
		ret->kind = op->kind;
		ret->result = op->result;
		ret->ns = op->return_ns;
	} else if (m->last) {
		ret->ns = m->last->enter_ns; /* the rank gave the handle back after the failure */
	}
	return m->state == CW_COMM_FAILED || (ret->result && ret->result != CW_NCCL_IN_PROGRESS);
}

/*
 * The member's newest call, made as early as that of the rank that has waited longest: where all
 * members' calls failed and their programs went on, the others wait in a later one.
 */
static bool find_host_call(const struct cw_snap_member *m, const struct gate *gate,
			   struct failed_call *ret)
{
	const struct cw_op *op = m->last;

	if (!op || op->kind != gate->op_kind || !position_has_failed(op) ||
	    (gate->op && op->op_index < gate->op->op_index))
		return false;
	*ret = (struct failed_call){
		.kind = op->kind, .result = op->result, .ns = op->return_ns, .text = m->last_error
	};
	return true;
}

bool failed_call_at(const struct cw_snapshot *snap, const struct gate *gate, uint32_t member,
		    struct failed_call *ret)
{
	const struct cw_snap_member *m = &snap->comms[gate->comm].members[member];

	if (position_of(snap, m).flags & POS_UNMADE)
		return find_making(m, ret);
	return gate->kind == GATE_HOST && find_host_call(m, gate, ret);
}
