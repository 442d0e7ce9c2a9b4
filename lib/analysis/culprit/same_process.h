/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that drives several devices counts as several ranks. If one of its threads makes the
 * calls of all, anything that holds up that thread holds up all these ranks. This includes ranks
 * that no rank waits for yet, because their peers are at earlier calls.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/engine_context.h"

/*
 * Lists the idle ranks of the culprit's process: in no call, waiting at no gate, held up by no
 * device, and without progress for as long as the culprit, within the time of one step. `ranks` has
 * room for all ranks. Returns their number. O(members of all comms) if the process has several
 * ranks.
 */
uint32_t same_process_list_idle(const struct engine_context *s, uint32_t culprit, uint32_t *ranks);

/*
 * True if another rank of the process is outside of NCCL and is no culprit, or no rank waits for
 * it. Then the culprit is not proven: the process may wait only for calls that it has launched, or
 * the thread that should go on with these is the thread that is held up. is_culprit is by rank.
 */
bool same_process_may_be_others(const struct engine_context *s, uint32_t culprit,
				const bool *is_culprit);
