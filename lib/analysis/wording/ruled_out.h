/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the other explanations that the evidence excludes, one sentence each. Pure. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Fills v->ruled_out_said, after v->also_said. Returns 0 or -ENOMEM. */
int ruled_out_list(struct diagnosis *diag);
