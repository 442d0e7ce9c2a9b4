/* SPDX-License-Identifier: Apache-2.0 */
/* The budget that the governor of summaries allows, in virtual time. */
#include <criterion/criterion.h>

#include "agent/cuda/summary_budget.h"

#define MS 1000000ull
#define LAUNCH_NS 4000u /* as in summary_budget.c */

struct run {
	uint64_t asked, taken, bytes_asked, bytes_taken, device_ns;
};

/* Ops of one size every interval for a while; a device that reads ns_per_mib. */
static struct run run(uint64_t bytes, uint64_t every_ns, uint64_t for_ns, uint64_t ns_per_mib)
{
	struct cw_summary_budget b;
	struct run r = { 0 };

	cw_summary_budget_init(&b, 0);
	for (uint64_t t = every_ns; t <= for_ns; t += every_ns) {
		uint64_t cost = 0, draw = (r.asked * 2654435761u) >> 8;
		uint64_t n = cw_summary_budget_take(&b, t, bytes, draw, &cost);
		uint64_t took = n * ns_per_mib >> 20;

		r.asked++;
		r.bytes_asked += bytes;
		if (!n)
			continue;
		cr_assert_leq(n, bytes);
		r.taken++;
		r.bytes_taken += n;
		r.device_ns += took + LAUNCH_NS;
		cw_summary_budget_settle(&b, n, cost, took);
	}
	return r;
}

static void check_share(const struct run *r, uint64_t for_ns)
{
	cr_assert_gt(r->taken, 0);
	/* The underestimate of one launch comes on top. */
	cr_assert_leq(r->device_ns, for_ns / 200 + 2 * MS, "%llu of %llu ns",
		      (unsigned long long)r->device_ns, (unsigned long long)for_ns);
}

Test(agent_summary_budget, stays_below_its_share_whatever_the_ops)
{
	static const uint64_t sizes[] = { 8, 4096, 1 << 20, 64 << 20, 1 << 30 };
	static const uint64_t gaps[] = { 20000, 1 * MS, 50 * MS };
	static const uint64_t speeds[] = { 250, 2000, 100000 };

	for (unsigned i = 0; i < 5; i++) {
		for (unsigned j = 0; j < 3; j++) {
			for (unsigned k = 0; k < 3; k++) {
				struct run r = run(sizes[i], gaps[j], 20000 * MS, speeds[k]);

				check_share(&r, 20000 * MS);
			}
		}
	}
}

Test(agent_summary_budget, looks_at_all_of_rare_small_ops)
{
	struct run r = run(4096, 50 * MS, 10000 * MS, 500);

	cr_assert_geq(r.taken, r.asked * 9 / 10, "%llu of %llu", (unsigned long long)r.taken,
		      (unsigned long long)r.asked);
	cr_assert_eq(r.bytes_taken, r.taken * 4096);
}

Test(agent_summary_budget, takes_a_share_of_what_is_too_large)
{
	struct run r = run(1ull << 30, 10 * MS, 20000 * MS, 1000);

	cr_assert_gt(r.taken, 3);
	cr_assert_lt(r.bytes_taken, r.taken << 30);
	cr_assert_geq(r.bytes_taken, (r.taken << 30) / 64);
}

Test(agent_summary_budget, comes_back_after_one_launch_that_took_seconds)
{
	struct cw_summary_budget b;
	uint64_t cost;

	cw_summary_budget_init(&b, 0);
	cr_assert_gt(cw_summary_budget_take(&b, 1000 * MS, 4096, 0, &cost), 0);
	cw_summary_budget_settle(&b, 4096, cost, 4000 * MS);
	cr_assert_eq(cw_summary_budget_take(&b, 1001 * MS, 4096, 0, &cost), 0);
	for (uint64_t t = 1002; t < 7000; t += 10)
		if (cw_summary_budget_take(&b, t * MS, 4096, 0, &cost))
			return;
	cr_assert_fail("not within six seconds");
}

Test(agent_summary_budget, time_that_steps_back_earns_nothing)
{
	struct cw_summary_budget b;
	uint64_t cost;

	cw_summary_budget_init(&b, 5000 * MS);
	cr_assert_eq(cw_summary_budget_take(&b, 1000 * MS, 4096, 0, &cost), 0);
}

Test(agent_summary_budget, every_place_of_a_tensor_has_its_turn)
{
	const uint64_t bytes = 64ull << 20;
	uint64_t seen = 0;

	for (uint64_t i = 0; i < 4096; i++) {
		struct cw_summary_args args = { .dtype = CW_SUM_FP32, .elements = bytes / 4 };

		cw_summary_budget_place(i * UINT64_C(0x9e3779b97f4a7c15), bytes, bytes / 50, &args);
		cr_assert_eq(args.stride_log2_plus_1, 7, "the next power of two");
		cr_assert_eq(args.stride_words, 64 * CW_SUM_CHUNK_WORDS);
		cr_assert_lt(args.first_word, args.stride_words);
		cr_assert_eq(args.first_word % CW_SUM_CHUNK_WORDS, 0);
		cr_assert_leq(cw_sum_chosen(&args) * 8, bytes / 50);
		seen |= UINT64_C(1) << args.first_word / CW_SUM_CHUNK_WORDS;
	}
	cr_assert_eq(seen, UINT64_MAX);
}

Test(agent_summary_budget, what_is_granted_whole_is_looked_at_whole)
{
	struct cw_summary_args args = { .dtype = CW_SUM_FP32, .elements = 1000 };

	cw_summary_budget_place(UINT64_MAX, 4000, 4000, &args);
	cr_assert_eq(args.stride_words, CW_SUM_CHUNK_WORDS);
	cr_assert_eq(args.first_word, 0);
	cr_assert_eq(args.stride_log2_plus_1, 1);
}
