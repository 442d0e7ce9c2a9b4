/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the first rank with a NaN or infinity in collwatch.torch's files about modules and
 * operators. Also decides whether loss scaling explains the number. The files contain the scale, so
 * we need not guess it from magnitudes as loss_scaling.c does.
 *
 * Pure. All input is borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A sampled step. */
struct cw_modules_step {
	int64_t step;
	/* number of frames with a NaN or infinity: in forward, and in backward */
	uint64_t n_bad, n_bad_gradients;
	double scale; /* loss scale; NaN = unknown */
};

/*
 * The first frame with a NaN or infinity in a phase (forward or backward) of a step. The phase
 * before had none.
 */
struct cw_modules_event {
	int64_t step;
	bool is_backward;
	/*
	 * True if the number came out of a call between ranks whose input from this rank was
	 * finite.
	 */
	bool is_received;
	const char *at; /* "2026-11-24T18:41:54.908Z"; "" = unknown */
};

struct cw_modules_rank {
	const struct cw_modules_step *steps; /* array in order of steps */
	uint32_t n_steps;
	const struct cw_modules_event *events; /* in order of time */
	uint32_t n_events;
};

/* Consecutive steps in which only gradients are bad, followed by a smaller scale. */
struct cw_modules_row {
	uint32_t rank, n_steps;
	int64_t step;
	double before, after;
};

#define CW_MODULES_ROWS 64u

struct cw_modules_report {
	bool has_first;
	uint32_t rank, event; /* the first event, by step, then by the hosts' clocks */
	/* only the clocks decide, because another rank has an event in the same step */
	bool is_first_by_clock;
	/*
	 * Number of bad steps of all ranks: those that loss scaling does not explain, and those
	 * that it explains.
	 */
	uint64_t n_bad_steps, n_scaling_steps;
	struct cw_modules_row rows[CW_MODULES_ROWS];
	uint32_t n_rows, n_rows_over_limit;
};

void cw_modules_judge(const struct cw_modules_rank *ranks, uint32_t n,
		      struct cw_modules_report *ret);
