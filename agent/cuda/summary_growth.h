/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether one rank's numbers are about to leave their type, as its summaries come: a small part of
 * what numerics/judge/headroom.c finds in those of all ranks, without libm and without memory
 * of its own, for the agent's stop (agent/cuda/stop_at.h).
 *
 * Tensors of one call in each step, told apart as far as a summary says what was called, are a
 * series. One is leaving when its largest magnitude has grown with each of CW_GROWTH_STEPS looks,
 * at an even pace, and at that pace two more of them lead out. A loss scale that doubles is one
 * growth, not eight.
 *
 * One thread. Summaries that were published and are whole.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

#define CW_GROWTH_STEPS 8u
/* Calls of a step that are told apart, inputs and outputs, of all communicators. */
#define CW_GROWTH_SERIES 256u

struct cw_growth_series {
	struct cw_rec_summary last; /* what it is of, and in which step */
	float log2[CW_GROWTH_STEPS];
	uint32_t n;
};

/* Zeroed is empty. */
struct cw_growth {
	struct cw_growth_series series[CW_GROWTH_SERIES];
	uint32_t n;
	bool is_full; /* others are not followed */
};

/* Takes the next summary, in the order of their numbers. True: it is leaving its type. */
bool cw_growth_is_leaving(struct cw_growth *g, const struct cw_rec_summary *s);
