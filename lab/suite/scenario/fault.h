/* SPDX-License-Identifier: Apache-2.0 */
/* What a fault does to a call, whether the rank that makes it is simulated or a process. */
#pragma once

#include <stdbool.h>

#include "lab/suite/scenario/scenario.h"

/* Whether it waits for such a call. */
bool suite_fault_is_for(const struct suite_fault *f, const struct suite_call *call);

/* SUITE_CHANGE: the call as the rank makes it. */
void suite_fault_change(const struct suite_fault *f, struct suite_call *call);
