/* SPDX-License-Identifier: Apache-2.0 */
/* Other answers that the same evidence allows: said beside the verdict, with a probability. */
#pragma once

#include "analysis/incident.h"

/* Fills v->alternatives but for their reasons, from the findings related. Returns 0 or -ENOMEM. */
int alternatives_list(struct incident *inc);
