/* SPDX-License-Identifier: Apache-2.0 */
/* How sure we are of the verdict, and which windows would make us surer. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Sets v->blind_spots and v->confidence. The rest of the verdict must be filled. */
void certainty_judge(struct diagnosis *diag);

/*
 * Sets v->wants_windows, v->wanted, v->histories_differ and v->messages_are_uneven. Wanted are
 * comms on the chain of waits, comms whose rolling hashes differ, and others whose windows could
 * help, if we could fetch these and have not done so. diag->main may be NULL (healthy). Returns 0
 * or -ENOMEM.
 */
int certainty_list_wanted(struct diagnosis *diag);

/*
 * True if we could fetch some member's calls and have not done so. We mean its calls between the
 * last point at which the histories agreed and the first at which they differed.
 */
bool certainty_lacks_calls(const struct cw_snapshot *snap, uint32_t comm,
			   const struct call_hashes *h);
