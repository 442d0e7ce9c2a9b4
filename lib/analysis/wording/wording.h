/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we tell a person whom the verdict has woken up. Fills v->said, the reasons of the culprits
 * and of the alternatives, and the list of what was ruled out.
 */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* diag->main is NULL for a healthy snapshot. Returns 0 or -ENOMEM. */
int wording_of_verdict(struct diagnosis *diag);
