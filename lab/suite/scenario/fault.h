/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of a fault on a call. The rank that makes the call is simulated or a process. */
#pragma once

#include <stdbool.h>

#include "lab/suite/scenario/scenario.h"

/* True if this is a call that the fault waits for. */
bool suite_fault_is_for(const struct suite_fault *f, const struct suite_call *call);

/* SUITE_CHANGE: changes the call to what the rank really calls. */
void suite_fault_change(const struct suite_fault *f, struct suite_call *call);
