/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose number was the first that is none, of what collwatch.torch wrote down of each rank's
 * modules and operators, and whether loss scaling explains it: with the scale itself written down,
 * that is known and need not be guessed (loss_scaling.c guesses it, from magnitudes).
 *
 * Pure. What it is given is borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A step that was looked at. */
struct cw_modules_step {
	int64_t step;
	uint64_t n_bad, n_bad_gradients; /* frames of forward, of backward */
	double scale;                    /* of the loss; NaN = not known */
};

/* The first frame with a number that is none, in a step and phase behind one without. */
struct cw_modules_event {
	int64_t step;
	bool is_backward;
	bool is_received; /* it came out of a call between ranks, into which this one put nothing
			     bad */
	const char *at;   /* "2026-11-24T18:41:54.908Z"; "" = not known */
};

struct cw_modules_rank {
	const struct cw_modules_step *steps; /* in their order */
	uint32_t n_steps;
	const struct cw_modules_event *events; /* in their order */
	uint32_t n_events;
};

/* Steps in a row whose gradients alone are bad, behind which the scale was smaller. */
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
	/* Bad steps that loss scaling does not explain, of all ranks; those that it does. */
	uint64_t n_bad_steps, n_scaling_steps;
	struct cw_modules_row rows[CW_MODULES_ROWS];
	uint32_t n_rows, n_rows_left_out;
};

void cw_modules_judge(const struct cw_modules_rank *ranks, uint32_t n,
		      struct cw_modules_report *ret);
