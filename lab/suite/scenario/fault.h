/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of a fault on a call. A simulated rank or a real process makes the call. */
#pragma once

#include <stdbool.h>

#include "lab/suite/scenario/scenario.h"

/* True if the fault strikes this call. */
bool suite_fault_is_for(const struct suite_fault *f, const struct suite_call *call);

/* Changes the call into the wrong call that the rank makes. For faults with SUITE_CHANGE. */
void suite_fault_change(const struct suite_fault *f, struct suite_call *call);
