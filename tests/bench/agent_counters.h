/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's counters beside time, where it has any and we may read them. */
#pragma once

#include "tests/bench/agent_measure.h"

struct counted {
	bool is_there;
	double median; /* added by the agent, per op */
	char why[64];  /* it is not there */
};

/* Instructions and cache misses of a call in user space, with the agent less without. */
void count_instructions(call_fn call, struct counted *ret);
void count_cache_misses(call_fn call, struct counted *ret);
