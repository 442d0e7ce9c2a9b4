/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several ends came first, as far as their instants tell: on one node the kernel gives
 * them one clock, between nodes what is left of two clocks and of the way of a digest remains. What
 * comes surely after another end follows from it; what does not is a tie, unless its cause
 * decides: who sent the signal, and whom NCCL had told that a peer is gone.
 * leader/postmortem_first.h does the same for a whole job that is over.
 *
 * A rank's part ends with its process, or before that with the call that NCCL failed.
 */
#pragma once

#include "analysis/culprit/engine_context.h"
#include "analysis/culprit/independent_groups.h"

/* a ended before b, whoever tells of it. */
bool death_order_is_before(const struct cw_snap_rank *a, const struct cw_snap_rank *b);

/* The error does not follow from the loss of a peer, as far as results and instants tell. */
bool death_order_is_own_failure(const struct engine_context *s, uint32_t gate, uint32_t rank,
				const struct failed_call *call);

/* Fills s->has_lost_peer, before any question about a failure. 0 or -ENOMEM. */
int death_order_note_losses(struct engine_context *s);

/* Sets is_late in the findings of deaths and of calls that failed. 0 or -ENOMEM. */
int death_order_mark(struct engine_context *s, const struct independent_groups *independent_groups);
