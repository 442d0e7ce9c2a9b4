/* SPDX-License-Identifier: Apache-2.0 */
/* How sure the verdict is, and what would make it surer. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Sets v->confidence from what could be seen. The rest of the verdict must be filled. */
void certainty_judge(struct diagnosis *diag);

/*
 * Sets v->wants_windows and v->wanted: comms of the wait chain, and comms whose rolling hashes
 * differ, as far as windows could be fetched and have not been. diag->main may be NULL (healthy).
 * Returns 0 or -ENOMEM.
 */
int certainty_list_wanted(struct diagnosis *diag);

/*
 * Some member's calls between the last point at which the histories agreed and the first at which
 * they did not could be fetched and have not been.
 */
bool certainty_lacks_calls(const struct cw_snapshot *snap, uint32_t comm,
			   const struct call_hashes *h);
