/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/align/mismatch.h"

#include "model/signature.h"

const char *mismatch_field(const struct cw_op *a, const struct cw_op *b)
{
	if (a->kind != b->kind)
		return "kind";
	if (cw_signature_is_bytewise(a->kind)) {
		if (a->bytes != b->bytes)
			return a->count == b->count ? "dtype" : "count";
	} else {
		if (a->count != b->count)
			return "count";
		if (a->dtype != b->dtype)
			return "dtype";
		if (a->redop != b->redop)
			return "redop";
	}
	return a->root != b->root ? "root" : "order";
}
