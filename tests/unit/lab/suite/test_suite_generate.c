/* SPDX-License-Identifier: Apache-2.0 */
/* The drawn scenarios, and their frequencies. */
#include <criterion/criterion.h>

#include "lab/suite/generate.h"

#define DRAWN 2000u

struct drawn {
	unsigned n_waits, n_usual;
	/* By CW_HOST_WAIT_*: ranks of healthy jobs, and culprits. */
	unsigned healthy[CW_HOST_WAIT__MAX], hanging[CW_HOST_WAIT__MAX];
};

static int count(void *user, const struct suite_scenario *s)
{
	struct drawn *drawn = user;

	drawn->n_waits += suite_is_hanging_wait(s);
	drawn->n_usual += suite_is_hanging_wait(s) && s->is_usual_wait;
	cr_expect(!s->is_usual_wait || suite_is_hanging_wait(s), "%s", s->name);
	for (uint32_t i = 0; i < s->n_faults; i++) {
		const struct suite_fault *f = &s->faults[i];

		if (f->action != SUITE_BLOCK)
			continue;
		if (s->is_usual_wait)
			drawn->hanging[f->wait]++;
		else if (!s->n_answers && !s->n_postmortems)
			drawn->healthy[f->wait]++;
	}
	return 0;
}

Test(suite_generate, three_of_ten_hanging_waits_at_least_look_like_healthy_ones)
{
	static const uint64_t seeds[] = { 8, 101 };

	for (unsigned i = 0; i < 2; i++) {
		struct drawn drawn = { 0 };
		struct cw_err err = { 0 };

		cr_assert_eq(cw_suite_generate(DRAWN, seeds[i], count, &drawn, &err), 0, "%s",
			     err.text);
		cr_expect_gt(drawn.n_waits, 150);
		cr_expect_geq(100 * drawn.n_usual, 30 * drawn.n_waits, "%u of %u", drawn.n_usual,
			      drawn.n_waits);
		for (unsigned k = 0; k < CW_HOST_WAIT__MAX; k++)
			cr_expect(!drawn.healthy[k] == !drawn.hanging[k],
				  "sleeping in %u: %u healthy, %u hang", k, drawn.healthy[k],
				  drawn.hanging[k]);
	}
}
