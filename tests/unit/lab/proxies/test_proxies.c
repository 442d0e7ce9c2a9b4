/* SPDX-License-Identifier: Apache-2.0 */
/* The rates of the engine on the model of both proxies; "collwatch-lab proxies" draws far more. */
#include <criterion/criterion.h>
#include <string.h>

#include "lab/proxies/proxy_score.h"

#define SEED 1u

static void draw(struct proxy_score *s, enum proxy_fault fault, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(proxy_score_add(s, SEED + i, fault), 0);
}

/* At most `wrong` of the draws may be wrong, and none of them certain. */
static void assert_rate(enum proxy_fault fault, unsigned n, unsigned wrong)
{
	struct proxy_score s = { 0 };

	draw(&s, fault, n);
	cr_expect_leq(n - s.of[fault].right, wrong, "%s: seed %llu", proxy_fault_name(fault),
		      (unsigned long long)s.first_wrong[fault]);
	cr_expect_eq(s.of[fault].wrong_certain, 0, "%s", proxy_fault_name(fault));
	cr_expect_eq(s.of[fault].early_certain, 0, "%s", proxy_fault_name(fault));
}

Test(proxies, broken_links_are_named)
{
	assert_rate(PROXY_FAULT_STALL, 60, 3);
	assert_rate(PROXY_FAULT_ONE_WAY, 40, 2);
	assert_rate(PROXY_FAULT_CUT, 40, 2);
	assert_rate(PROXY_FAULT_LATE, 40, 2);
}

Test(proxies, gpus_at_fault_are_named)
{
	assert_rate(PROXY_FAULT_UNLAUNCHED, 60, 3);
	assert_rate(PROXY_FAULT_GPU_STOPS, 60, 3);
	assert_rate(PROXY_FAULT_POOL, 40, 2);
}

Test(proxies, slow_links_are_named_mostly)
{
	assert_rate(PROXY_FAULT_SLOW, 40, 10);
}

Test(proxies, sound_links_are_not_accused)
{
	assert_rate(PROXY_FAULT_NONE, 60, 0);
}

Test(proxies, other_causes_are_not_overruled)
{
	assert_rate(PROXY_FAULT_STOPPED, 30, 0);
	assert_rate(PROXY_FAULT_ABSENT, 30, 0);
	assert_rate(PROXY_FAULT_MISMATCH, 30, 0);
}

Test(proxies, a_seed_is_always_the_same_case)
{
	struct proxy_score a = { 0 }, b = { 0 };

	draw(&a, PROXY_FAULT_STALL, 5);
	draw(&b, PROXY_FAULT_STALL, 5);
	cr_assert_eq(memcmp(&a, &b, sizeof(a)), 0);
}

static bool has_certain_link(const struct proxy_score *s)
{
	return s->of[PROXY_FAULT_STALL].certain > 0;
}

/* A score that could not be certain would find no wrong certainty either. */
Test(proxies, some_verdicts_are_certain)
{
	struct proxy_score s = { 0 };

	draw(&s, PROXY_FAULT_STALL, 20);
	cr_assert(has_certain_link(&s));
}
