/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges from the summaries of one rank whether its numbers are about to leave their type (exceed
 * the largest finite number). numerics/judge/headroom.c judges all ranks; this file repeats a small
 * part of it. The agent's stop (agent/cuda/stop_at.h) uses this file, so the code needs no libm and
 * allocates no memory.
 *
 * A series consists of the tensors of one call in each step. We distinguish calls by the facts in
 * their summaries. A series is leaving its type if two conditions hold. Its largest magnitude grew
 * at an even pace in CW_GROWTH_STEPS summaries. Two more such steps would exceed the type. A loss
 * scale that doubles is one growth, not eight.
 *
 * One thread. The caller passes only published, whole summaries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

#define CW_GROWTH_STEPS 8u
/* Limit of the series, for inputs and outputs of all communicators in a step. */
#define CW_GROWTH_SERIES 256u

struct cw_growth_series {
	struct cw_rec_summary last; /* identifies the call, and the step of its last summary */
	float log2[CW_GROWTH_STEPS];
	uint32_t n;
};

/* All series of a rank. A zeroed struct is empty. */
struct cw_growth {
	struct cw_growth_series series[CW_GROWTH_SERIES];
	uint32_t n;
	bool is_full; /* the table is full, so we ignore further calls */
};

/*
 * Adds the next summary; the caller passes summaries in the order of their numbers. Returns true if
 * the numbers of the summary's series are leaving their type.
 */
bool cw_growth_is_leaving(struct cw_growth *g, const struct cw_rec_summary *s);
