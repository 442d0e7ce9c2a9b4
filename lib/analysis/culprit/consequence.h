/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deaths that came after differing calls. NCCL lets many such calls pass, with wrong data. A
 * program that checks its numbers, or uses one as an index, then ends by itself, and the other
 * ranks wait for it. The dead rank may have made the right call and only received wrong data.
 *
 * If all members had entered the calls before the first death, the calls prove the difference. The
 * cause of the death is not proven. So we report only that the death came after the call.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

/*
 * Joins each death that may follow from differing calls to the finding of these calls. That finding
 * gets the waits for the dead rank. All findings must be complete. Returns 0 or -ENOMEM.
 */
int consequence_join(struct engine_context *s);

/* True if consequence_join() joined the rank's death to this finding. */
static inline bool consequence_is_of(const struct engine_context *s, const struct finding *f,
				     uint32_t rank)
{
	return f->ended && s->ended_after[rank] == f->comm + 1;
}
