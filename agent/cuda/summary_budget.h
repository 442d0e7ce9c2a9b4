/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the device's time summaries may take (COLLWATCH_SUMMARY=sampled): credit grows with
 * time and is spent by launches, as they are estimated first and as they were measured later. Says
 * which ops are looked at, and which share of a large tensor.
 *
 * Pure: time comes in. The caller keeps two threads out.
 */
#pragma once

#include <stdint.h>

#include "record/summary_math.h"

#define CW_SUMMARY_SHARE_PPM 5000 /* 0.5 % of the stream's time */

struct cw_summary_budget {
	uint64_t last_ns;
	int64_t credit_ns; /* below 0: launches took longer than was thought */
	uint64_t ns_per_mib;
};

void cw_summary_budget_init(struct cw_summary_budget *b, uint64_t now_ns);

/*
 * How many of a tensor's bytes to look at; 0 = leave this one out. draw: a number that differs from
 * op to op and is the same on all ranks. *ret_cost_ns: what was taken for it.
 */
uint64_t cw_summary_budget_take(struct cw_summary_budget *b, uint64_t now_ns, uint64_t bytes,
				uint64_t draw, uint64_t *ret_cost_ns);

/* A launch over so many bytes, for which cost_ns was taken, kept the device busy for device_ns. */
void cw_summary_budget_settle(struct cw_summary_budget *b, uint64_t bytes, uint64_t cost_ns,
			      uint64_t device_ns);

/*
 * Which words of a tensor of so many bytes to look at, if not at more than `granted`: one chunk in
 * 2^n, from one on that follows from draw. So members that look at the same share look at the same
 * places, and what lies anywhere is found in time. Fills in args' chunks.
 */
void cw_summary_budget_place(uint64_t draw, uint64_t bytes, uint64_t granted,
			     struct cw_summary_args *args);
