/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/align/mismatch.h"

#include "model/signature.h"

enum cw_detail mismatch_field(const struct cw_op *a, const struct cw_op *b)
{
	if (a->kind != b->kind)
		return CW_DETAIL_KIND;
	if (cw_signature_is_bytewise(a->kind)) {
		if (a->bytes != b->bytes)
			return a->count == b->count ? CW_DETAIL_DTYPE : CW_DETAIL_COUNT;
	} else {
		if (a->count != b->count)
			return CW_DETAIL_COUNT;
		if (a->dtype != b->dtype)
			return CW_DETAIL_DTYPE;
		if (a->redop != b->redop)
			return CW_DETAIL_REDOP;
	}
	return a->root != b->root ? CW_DETAIL_ROOT : CW_DETAIL_ORDER;
}
