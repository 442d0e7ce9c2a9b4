/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the verdict into sayings, for a person whom the alert woke up. Fills v->said, the reasons of
 * the culprits and of the alternatives, and the list of excluded explanations.
 */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Fills all sayings of diag->v. diag->main is NULL for a healthy snapshot. Returns 0 or -ENOMEM. */
int wording_of_verdict(struct diagnosis *diag);
