/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict in words, for someone who was woken up by it: v->summary, the culprits' and the
 * alternatives' reasons, and what was ruled out.
 */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* diag->main is NULL for a healthy snapshot. Returns 0 or -ENOMEM. */
int wording_of_verdict(struct diagnosis *diag);
