/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the first rank with a NaN or infinity, in collwatch.torch's files about each rank's modules
 * and operators. Also decides whether loss scaling explains it. These files contain the scale, so
 * we need not guess (loss_scaling.c guesses, from magnitudes).
 *
 * Pure. All input is borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A sampled step. */
struct cw_modules_step {
	int64_t step;
	uint64_t n_bad, n_bad_gradients; /* bad frames of forward, of backward */
	double scale;                    /* of the loss; NaN = unknown */
};

/* The first frame with a NaN or infinity, in a step and phase after one without. */
struct cw_modules_event {
	int64_t step;
	bool is_backward;
	/* it came out of a call between ranks whose input on this rank was finite */
	bool is_received;
	const char *at; /* "2026-11-24T18:41:54.908Z"; "" = unknown */
};

struct cw_modules_rank {
	const struct cw_modules_step *steps; /* in order */
	uint32_t n_steps;
	const struct cw_modules_event *events; /* in order */
	uint32_t n_events;
};

/* Consecutive steps with bad gradients only, followed by a smaller scale. */
struct cw_modules_row {
	uint32_t rank, n_steps;
	int64_t step;
	double before, after;
};

#define CW_MODULES_ROWS 64u

struct cw_modules_report {
	bool has_first;
	uint32_t rank, event;   /* of the first; by step, then by the hosts' clocks */
	bool is_first_by_clock; /* another rank has one in the same step */
	/* Bad steps of all ranks: first without an explanation by loss scaling, then with one. */
	uint64_t n_bad_steps, n_scaling_steps;
	struct cw_modules_row rows[CW_MODULES_ROWS];
	uint32_t n_rows, n_rows_over_limit;
};

void cw_modules_judge(const struct cw_modules_rank *ranks, uint32_t n,
		      struct cw_modules_report *ret);
