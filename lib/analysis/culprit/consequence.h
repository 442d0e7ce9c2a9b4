/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deaths that came after calls that differed. NCCL lets many such calls pass with wrong data; a
 * program that checks its numbers, or uses one as an index, then ends by itself, and the others
 * wait for it. Whoever ended need not be who called wrongly: often it only got the data.
 *
 * That the calls differed is proven by what all members had entered before anybody ended; that the
 * death came of it is not, so it is told as what came after it.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

/*
 * After all findings: each that is such a death becomes part of the one of calls that differ, which
 * gets its wait. Returns 0 or -ENOMEM.
 */
int consequence_join(struct engine_context *s);

/* The death of that rank is told with this finding. */
static inline bool consequence_is_of(const struct engine_context *s, const struct finding *f,
				     uint32_t rank)
{
	return f->ended && s->ended_after[rank] == f->comm + 1;
}
