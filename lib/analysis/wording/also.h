/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences about differences that accuse no rank. People look at such differences first, so a
 * verdict states them beside its culprits.
 */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Fills v->also_said. Returns 0 or -ENOMEM. */
int also_list(struct diagnosis *diag);
