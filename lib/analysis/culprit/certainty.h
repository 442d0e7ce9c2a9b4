/* SPDX-License-Identifier: Apache-2.0 */
/* The confidence of a verdict, and the windows that could raise it. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Sets v->blind_spots and v->confidence. The rest of the verdict must be filled. */
void certainty_judge(struct diagnosis *diag);

/*
 * Sets v->wants_windows, v->wanted, v->histories_differ and v->messages_are_uneven. We want windows
 * of comms on the chain of waits, of comms whose rolling hashes differ, and of other comms if they
 * could help. A comm is wanted only if we can fetch its windows and have not done so. diag->main
 * may be NULL (healthy). Returns 0 or -ENOMEM.
 */
int certainty_list_wanted(struct diagnosis *diag);

/*
 * True if we lack calls of some member that we could fetch. We mean the calls between the last
 * point at which the histories agreed and the first point at which they differed.
 */
bool certainty_lacks_calls(const struct cw_snapshot *snap, uint32_t comm,
			   const struct call_hashes *h);
