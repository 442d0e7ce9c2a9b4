/* SPDX-License-Identifier: Apache-2.0 */
/* Other answers that the same evidence allows: said beside the verdict, with a probability. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* f has not been waited for so much shorter than main that it must be another event. */
bool alternatives_same_event(const struct cw_snapshot *snap, const struct finding *main,
			     const struct finding *f);

/* Fills v->alternatives but for their reasons, from the findings related. Returns 0 or -ENOMEM. */
int alternatives_list(struct diagnosis *diag);
