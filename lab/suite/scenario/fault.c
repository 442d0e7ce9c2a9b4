/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/scenario/fault.h"

#include "model/facts.h"
#include "model/signature.h"

bool suite_fault_is_for(const struct suite_fault *f, const struct suite_call *call)
{
	return (f->family == SUITE_NONE || f->family == call->family) &&
	       (f->op_kind == CW_OP_NONE || f->op_kind == call->kind);
}

static void change_kind(struct suite_call *call, uint8_t kind)
{
	call->kind = kind;
	call->root = cw_op_has_root(kind) ? 0 : CW_PEER_NONE;
	call->redop = cw_op_has_redop(kind) ? CW_REDOP_SUM : CW_REDOP_NONE;
}

void suite_fault_change(const struct suite_fault *f, struct suite_call *call)
{
	switch (f->field) {
	case SUITE_FIELD_COUNT:
		call->count = f->value;
		break;
	case SUITE_FIELD_DTYPE:
		call->dtype = (uint8_t)f->value;
		break;
	case SUITE_FIELD_REDOP:
		call->redop = (uint8_t)f->value;
		break;
	case SUITE_FIELD_ROOT:
		call->root = (int32_t)f->value;
		break;
	case SUITE_FIELD_COMM:
		call->family = (uint32_t)f->value;
		break;
	case SUITE_FIELD_PEER:
		call->peer_kind = SUITE_PEER_NUMBER;
		call->peer = (int32_t)f->value;
		break;
	default:
		change_kind(call, (uint8_t)f->value);
		break;
	}
}
