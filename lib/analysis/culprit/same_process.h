/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several ranks in one process. A process that drives several devices counts as several ranks. One
 * thread may make the calls of all these ranks. Then anything that blocks this thread blocks all
 * the ranks. This includes ranks that no rank waits for yet, because their peers are at earlier
 * calls.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/engine_context.h"

/*
 * Lists the idle ranks of the culprit's process. An idle rank is in no call, waits at no gate, and
 * does not wait for its device. It last made progress when the culprit did, within the time of one
 * step. `ranks` has room for all ranks. Returns the number of idle ranks. O(members of all comms)
 * if the process has several ranks.
 */
uint32_t same_process_list_idle(const struct engine_context *s, uint32_t culprit, uint32_t *ranks);

/*
 * True if the culprit is not proven, because another rank of its process is outside of NCCL. That
 * rank is no culprit, or no rank waits for it. Then the process may only wait for calls that it has
 * launched, or the blocked thread may be the one that should continue them. is_culprit is per rank.
 */
bool same_process_may_be_others(const struct engine_context *s, uint32_t culprit,
				const bool *is_culprit);
