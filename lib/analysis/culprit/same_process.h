/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that drives several devices is as many ranks. Where one of its threads issues the calls
 * of all, what holds that thread up holds up all of them, also those for whom nobody waits yet:
 * their peers may be at calls before.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/engine_context.h"

/*
 * Ranks of the culprit's process that do nothing either: in no call, waiting nowhere, held up by no
 * device, and have been so as long as it has, a step more or less. Into ranks, which has room for
 * all; how many. O(members of all comms) where the process is several ranks.
 */
uint32_t same_process_list_idle(const struct engine_context *s, uint32_t culprit, uint32_t *ranks);

/*
 * One is outside of NCCL that is not named, or for whom nobody waits: what it has launched may be
 * all that it waits for, or the thread that should go on with it be the one that is held up. So who
 * has not come is not proven. is_culprit: by rank.
 */
bool same_process_may_be_others(const struct engine_context *s, uint32_t culprit,
				const bool *is_culprit);
