/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alternatives: other answers that the same evidence allows. A verdict lists them with a
 * probability each.
 */
#pragma once

#include "analysis/culprit/diagnosis.h"

/*
 * True if the waits for f and the waits for main may be one event: the waits for f did not begin
 * much later.
 */
bool alternatives_same_event(const struct cw_snapshot *snap, const struct finding *main,
			     const struct finding *f);

/*
 * Fills v->alternatives from the related findings, except for the reasons. The culprits must be
 * known. Returns 0 or -ENOMEM.
 */
int alternatives_list(struct diagnosis *diag);
