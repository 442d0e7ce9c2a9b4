/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other answers that the same evidence allows. They stand beside the verdict, with a probability.
 */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* True if the waits for f and for main may be one event: f's did not begin much later. */
bool alternatives_same_event(const struct cw_snapshot *snap, const struct finding *main,
			     const struct finding *f);

/*
 * Fills v->alternatives, except for their reasons, from the related findings. The culprits must be
 * known. Returns 0 or -ENOMEM.
 */
int alternatives_list(struct diagnosis *diag);
