/* SPDX-License-Identifier: Apache-2.0 */
#include "common/awake.h"

static int64_t look(struct cw_awake *a)
{
	int64_t now_ns = cw_clock_now_ns(a->of), gap_ns = now_ns - a->looked_ns;

	if (gap_ns > CW_AWAKE_STEP_NS)
		a->held_ns += gap_ns - CW_AWAKE_STEP_NS;
	a->looked_ns = now_ns;
	return now_ns;
}

static int64_t monotonic_ns(void *user)
{
	return look(user);
}

static int64_t wall_ns(void *user)
{
	return cw_clock_wall_ns(((struct cw_awake *)user)->of);
}

static int64_t awake_ns(void *user)
{
	struct cw_awake *a = user;

	return look(a) - a->held_ns;
}

void cw_awake_init(struct cw_awake *a, const struct cw_clock *of)
{
	*a = (struct cw_awake){ .of = of, .looked_ns = cw_clock_now_ns(of) };
	a->clock = (struct cw_clock){ monotonic_ns, wall_ns, a, awake_ns };
}
