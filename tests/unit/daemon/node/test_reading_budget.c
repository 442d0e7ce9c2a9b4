/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/reading_budget.h"

#include <criterion/criterion.h>

static int64_t now_ns = CW_NS_PER_S;

static int64_t fake_now(void *user)
{
	return now_ns;
}

static const struct cw_clock fake = { .monotonic_ns = fake_now };
static struct cw_reading_budget *budget;

static void set_up(void)
{
	cr_assert_eq(cw_reading_budget_new(&fake, &budget), 0);
}

static void tear_down(void)
{
	budget = cw_reading_budget_free(budget);
}

TestSuite(reading_budget, .init = set_up, .fini = tear_down);

/* The time that the user can spend within this span, in pieces of 1 ms. */
static int64_t spend(uid_t uid, int64_t within_ns)
{
	int64_t end_ns = now_ns + within_ns, spent_ns = 0;

	for (;; now_ns += CW_NS_PER_MS) {
		while (cw_reading_budget_allows(budget, uid)) {
			cw_reading_budget_charge(budget, uid, CW_NS_PER_MS);
			spent_ns += CW_NS_PER_MS;
		}
		if (now_ns >= end_ns)
			return spent_ns;
	}
}

Test(reading_budget, one_user_has_a_burst_and_then_a_quarter_of_a_core)
{
	int64_t spent_ns = spend(1, 10 * CW_NS_PER_S);

	cr_expect_geq(spent_ns, CW_READING_BURST_NS + 2400 * CW_NS_PER_MS);
	cr_expect_leq(spent_ns, CW_READING_BURST_NS + 2600 * CW_NS_PER_MS);
	cr_expect_gt(cw_reading_budget_postponed(budget), 0);
}

Test(reading_budget, what_one_user_spends_is_not_taken_from_another)
{
	(void)spend(1, CW_NS_PER_S);
	cr_expect_not(cw_reading_budget_allows(budget, 1));
	cr_expect(cw_reading_budget_allows(budget, 2));
}

Test(reading_budget, those_who_spend_share_equally)
{
	int64_t first_ns = 0, second_ns = 0;

	for (int i = 0; i < 10000; i++) {
		first_ns += spend(1, 0);
		second_ns += spend(2, 0);
		now_ns += CW_NS_PER_MS;
	}
	cr_expect_leq(first_ns + second_ns, 2 * CW_READING_BURST_NS + 2600 * CW_NS_PER_MS);
	cr_expect_leq(first_ns - second_ns, 100 * CW_NS_PER_MS);
	cr_expect_leq(second_ns - first_ns, 100 * CW_NS_PER_MS);
}

Test(reading_budget, one_costly_reading_is_paid_for_later)
{
	cr_expect(cw_reading_budget_allows(budget, 1));
	cw_reading_budget_charge(budget, 1, CW_READING_BURST_NS + CW_NS_PER_S);
	now_ns += 3 * CW_NS_PER_S;
	cr_expect_not(cw_reading_budget_allows(budget, 1));
	now_ns += 2 * CW_NS_PER_S;
	cr_expect(cw_reading_budget_allows(budget, 1));
}
