/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device time that summaries may take (COLLWATCH_SUMMARY=sampled). Credit grows with time. A
 * launch spends its estimated cost at once. Later we correct the credit by the measured time. The
 * budget chooses the ops, and the part of a large tensor.
 *
 * Pure: the caller passes the time. Only one thread at a time may call these functions.
 */
#pragma once

#include <stdint.h>

#include "record/summary_math.h"

#define CW_SUMMARY_SHARE_PPM 5000 /* 0.5 % of the stream's time */

struct cw_summary_budget {
	uint64_t last_ns;
	int64_t credit_ns; /* below 0: launches took longer than estimated */
	uint64_t ns_per_mib;
};

void cw_summary_budget_init(struct cw_summary_budget *b, uint64_t now_ns);

/*
 * Returns the number of a tensor's bytes to summarise; 0 = skip this tensor. draw: a number that
 * differs from op to op and is the same on all ranks. *ret_cost_ns: the credit that this call
 * spent.
 */
uint64_t cw_summary_budget_take(struct cw_summary_budget *b, uint64_t now_ns, uint64_t bytes,
				uint64_t draw, uint64_t *ret_cost_ns);

/*
 * Corrects the credit after a launch. The launch summarised `bytes` bytes, spent cost_ns of credit,
 * and kept the device busy for device_ns.
 */
void cw_summary_budget_settle(struct cw_summary_budget *b, uint64_t bytes, uint64_t cost_ns,
			      uint64_t device_ns);

/*
 * Chooses the words of a tensor to summarise, if the budget granted fewer bytes than the tensor
 * has. We read one chunk in 2^n. The first chunk follows from draw. Ranks with the same n therefore
 * read the same chunks, and over time we cover the whole tensor. Stores the chunks in args.
 */
void cw_summary_budget_place(uint64_t draw, uint64_t bytes, uint64_t granted,
			     struct cw_summary_args *args);
