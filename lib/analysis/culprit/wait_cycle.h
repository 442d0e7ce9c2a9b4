/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that wait for each other in a circle: a deadlock, or what follows from a send or receive
 * that was left out. Pure.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

enum wait_cycle {
	WAIT_CYCLE_NONE,  /* somebody outside is waited for, and that may be all */
	WAIT_CYCLE_MAYBE, /* what a rank waits for on one stream may not hold up its other ones */
	WAIT_CYCLE_REAL,
};

/*
 * Nobody in it may be waiting for somebody outside alone: in a broadcast, a reduce, a gather or a
 * scatter, a member waits for some of those that have not come, nobody sees for whom. And each
 * call in the circle must hold up the next one, not only its rank. Returns one of these or -ENOMEM.
 */
int wait_cycle_judge(struct engine_context *s, uint32_t component);

/*
 * Per component of the graph the gate that a cycle in it is known by, CW_SNAP_NONE where it has
 * none: a leader that takes over must find the incident of the one before it. NULL = no memory.
 */
uint32_t *wait_cycle_names(struct engine_context *s);

/* Fills *f for the cycle that is known by this gate. Only what is real is a proof. */
void wait_cycle_classify(const struct engine_context *s, uint32_t name, bool is_real,
			 struct finding *f);
