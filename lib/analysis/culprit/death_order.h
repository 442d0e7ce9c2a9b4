/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of several ends, as far as times show it. The kernel dates all ends of one node by one
 * clock. Between nodes, two clocks and the delay of a digest make times uncertain. An end that came
 * surely after another end follows from it. Otherwise two ends are a tie, unless their causes
 * decide: the sender of a signal, or NCCL's report of a lost peer. leader/postmortem_first.h orders
 * the ends of a whole job that is over.
 *
 * A rank's part ends with its process, or earlier with the call that NCCL failed.
 */
#pragma once

#include "analysis/culprit/engine_context.h"
#include "analysis/culprit/independent_groups.h"

/* True if rank a ended surely before rank b, whichever sources date the two ends. */
bool death_order_is_before(const struct cw_snap_rank *a, const struct cw_snap_rank *b);

/* True if the error of the failed call does not follow from a lost peer, by results and times. */
bool death_order_is_own_failure(const struct engine_context *s, uint32_t gate, uint32_t rank,
				const struct failed_call *call);

/* Fills s->has_lost_peer. Call it before the other functions. Returns 0 or -ENOMEM. */
int death_order_note_losses(struct engine_context *s);

/* Sets is_late in the findings of deaths and of failed calls. Returns 0 or -ENOMEM. */
int death_order_mark(struct engine_context *s, const struct independent_groups *independent_groups);
