/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/summary_budget.h"

/*
 * The overhead of a launch: the time from the end of the previous work to the first instruction of
 * the kernel, and the time after its last instruction.
 */
#define LAUNCH_NS 4000u
/*
 * START_NS_PER_MIB is half a terabyte a second, the read rate of a GPU from ten years ago. Measured
 * times correct it.
 */
#define START_NS_PER_MIB 2000u
#define MIN_NS_PER_MIB 100u
#define MAX_NS_PER_MIB (1u << 24)
/*
 * The most credit to save up: four seconds' worth. After a long pause the credit must not pay for a
 * flood of launches.
 */
#define CREDIT_MAX_NS (4000000000ll / 1000000 * CW_SUMMARY_SHARE_PPM)
/* A smaller part of a tensor shows too little to justify a launch. */
#define MIN_BYTES (64u << 10)
#define MIN_SHARE 64
#define STRIDE_LOG2_MAX 30
/*
 * If the credit covers fewer than PLENTY tensors of this size, we take one op in ONE_IN. Otherwise,
 * in a program with a fixed rhythm, the same ops would always spend the credit before the others.
 */
#define PLENTY 8
#define ONE_IN 4

void cw_summary_budget_init(struct cw_summary_budget *b, uint64_t now_ns)
{
	*b = (struct cw_summary_budget){ .last_ns = now_ns, .ns_per_mib = START_NS_PER_MIB };
}

static uint64_t cost_of(const struct cw_summary_budget *b, uint64_t bytes)
{
	return LAUNCH_NS + (uint64_t)((unsigned __int128)bytes * b->ns_per_mib >> 20);
}

static void earn(struct cw_summary_budget *b, uint64_t now_ns)
{
	uint64_t passed = now_ns > b->last_ns ? now_ns - b->last_ns : 0;

	if (passed > 1000000000u)
		passed = 1000000000u;
	if (passed * CW_SUMMARY_SHARE_PPM < 1000000u)
		return; /* not yet a whole nanosecond of credit */
	b->last_ns = now_ns;
	b->credit_ns += (int64_t)(passed * CW_SUMMARY_SHARE_PPM / 1000000);
	if (b->credit_ns > CREDIT_MAX_NS)
		b->credit_ns = CREDIT_MAX_NS;
}

uint64_t cw_summary_budget_take(struct cw_summary_budget *b, uint64_t now_ns, uint64_t bytes,
				uint64_t draw, uint64_t *ret_cost_ns)
{
	uint64_t cost, most;

	earn(b, now_ns);
	if (bytes == 0 || b->credit_ns < 2 * (int64_t)LAUNCH_NS)
		return 0;
	cost = cost_of(b, bytes);
	if ((uint64_t)b->credit_ns < PLENTY * cost && draw % ONE_IN != 0)
		return 0;
	if (cost > (uint64_t)b->credit_ns) {
		most = (((uint64_t)b->credit_ns - LAUNCH_NS) << 20) / b->ns_per_mib;
		if (most < MIN_BYTES || most < bytes / MIN_SHARE)
			return 0;
		bytes = most < bytes ? most : bytes;
		cost = cost_of(b, bytes);
	}
	b->credit_ns -= (int64_t)cost;
	*ret_cost_ns = cost;
	return bytes;
}

void cw_summary_budget_settle(struct cw_summary_budget *b, uint64_t bytes, uint64_t cost_ns,
			      uint64_t device_ns)
{
	uint64_t measured;

	b->credit_ns -= (int64_t)(device_ns + LAUNCH_NS) - (int64_t)cost_ns;
	/*
	 * Limit the debt. Otherwise one launch that waited behind other kernels would stop all
	 * summaries for minutes.
	 */
	if (b->credit_ns < -CREDIT_MAX_NS)
		b->credit_ns = -CREDIT_MAX_NS;
	if (bytes < MIN_BYTES)
		return; /* the overhead dominates the time of so few bytes */
	measured = (uint64_t)(((unsigned __int128)device_ns << 20) / bytes);
	if (measured < MIN_NS_PER_MIB)
		measured = MIN_NS_PER_MIB;
	if (measured > MAX_NS_PER_MIB)
		measured = MAX_NS_PER_MIB;
	b->ns_per_mib += (uint64_t)(((int64_t)measured - (int64_t)b->ns_per_mib) / 8);
}

void cw_summary_budget_place(uint64_t draw, uint64_t bytes, uint64_t granted,
			     struct cw_summary_args *args)
{
	uint64_t first = draw >> (64 - STRIDE_LOG2_MAX);
	unsigned log2 = 0;

	while (log2 < STRIDE_LOG2_MAX && bytes >> log2 > granted)
		log2++;
	args->stride_words = (uint64_t)CW_SUM_CHUNK_WORDS << log2;
	args->stride_log2_plus_1 = (uint8_t)(log2 + 1);
	args->first_word = CW_SUM_CHUNK_WORDS * (first & ((UINT64_C(1) << log2) - 1));
}
