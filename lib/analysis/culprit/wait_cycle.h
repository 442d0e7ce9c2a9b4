/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that wait for each other in a circle. This is a deadlock, or the consequence of a send or
 * receive that a rank left out. Pure.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

enum wait_cycle {
	WAIT_CYCLE_NONE,  /* a rank waits for another outside of the cycle, and perhaps for it alone
			   */
	WAIT_CYCLE_MAYBE, /* a rank's wait on one stream may not hold up its other streams */
	WAIT_CYCLE_REAL,
};

/*
 * Judges a component of the graph. In a real cycle no rank may wait for a rank outside alone. In a
 * broadcast, reduce, gather or scatter, a member waits for some of the missing members, and we do
 * not see for which. Moreover, each call of the circle must hold up the next call, not only its
 * rank. Returns an enum wait_cycle or -ENOMEM.
 */
int wait_cycle_judge(struct engine_context *s, uint32_t component);

/*
 * Returns, per component of the graph, the gate that names a cycle in it; CW_SNAP_NONE = it has no
 * gate. The name is the same on each node that sees the cycle, so a new leader finds the incident
 * of the leader before it. NULL = out of memory.
 */
uint32_t *wait_cycle_names(struct engine_context *s);

/* Fills *f for the cycle that this gate names. Only a real cycle is a proof. */
void wait_cycle_classify(const struct engine_context *s, uint32_t name, bool is_real,
			 struct finding *f);
