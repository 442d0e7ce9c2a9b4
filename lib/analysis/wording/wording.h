/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict in words, for a person who was woken up by it. Fills v->summary, the reasons of the
 * culprits and of the alternatives, and the list of what was ruled out.
 */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* diag->main is NULL for a healthy snapshot. Returns 0 or -ENOMEM. */
int wording_of_verdict(struct diagnosis *diag);
