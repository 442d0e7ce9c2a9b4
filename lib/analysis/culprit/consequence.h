/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deaths that came after differing calls. NCCL lets many such calls pass, with wrong data. A
 * program that checks its numbers, or uses one as an index, then ends by itself, and the other
 * ranks wait for it. The dead rank need not have made the wrong call: often it only got the data.
 *
 * The calls that all members had entered before the first death prove the difference. The cause of
 * the death is not proven, so we report only that it came after the call.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

/*
 * Joins each such death to the finding of the differing calls, which gets the death's wait. All
 * findings must be there. Returns 0 or -ENOMEM.
 */
int consequence_join(struct engine_context *s);

/* True if the rank's death is joined to this finding. */
static inline bool consequence_is_of(const struct engine_context *s, const struct finding *f,
				     uint32_t rank)
{
	return f->ended && s->ended_after[rank] == f->comm + 1;
}
