/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles: ranks that wait for each other in a circle. A cycle is a deadlock, or the consequence of
 * a send or receive that a rank omitted. Pure.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

enum wait_cycle {
	/* A rank of the cycle may wait only for a rank outside. */
	WAIT_CYCLE_NONE,
	WAIT_CYCLE_MAYBE, /* a rank's wait on one stream may not block its other streams */
	WAIT_CYCLE_REAL,
};

/*
 * Judges a component of the graph. Returns an enum wait_cycle or -ENOMEM.
 *
 * In a real cycle no rank may wait only for a rank outside. In a broadcast, reduce, gather or
 * scatter, a member waits for some of the missing members, and we do not see for which. Moreover,
 * each call of the circle must block the next call. It does not suffice that it blocks the next
 * call's rank.
 */
int wait_cycle_judge(struct engine_context *s, uint32_t component);

/*
 * Finds the message of a recording that closes a cycle alone: its waiter waits for a half that the
 * peer's list of open calls lacks, and without this wait no circle is left. The half may have
 * completed, so that the waiter is stuck, or was never posted. *ret_gate: CW_SNAP_NONE = there is
 * no such message, or several, or all waits of the cycle are of this kind. Returns 0 or -ENOMEM.
 */
int wait_cycle_unlisted(struct engine_context *s, uint32_t component, uint32_t *ret_gate);

/* Fills *f for the message of that gate: one of its two ranks is stuck. */
void wait_cycle_classify_pair(const struct engine_context *s, uint32_t gate, struct finding *f);

/*
 * Returns, for each component of the graph, the gate that names its cycle; CW_SNAP_NONE = the
 * component has no gate. All nodes that see the cycle give it the same name, so a new leader finds
 * the incident of the leader before it. NULL = out of memory.
 */
uint32_t *wait_cycle_names(struct engine_context *s);

/* Fills *f for the cycle with this name. Only a real cycle is a proof. */
void wait_cycle_classify(const struct engine_context *s, uint32_t name, bool is_real,
			 struct finding *f);
