/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws jobs that end by themselves. Either a watchdog in each rank aborts it, like PyTorch's, or
 * launchers end it after the first failure. The right cause of death is the first failure,
 * whichever process ended first.
 */
#include "lab/suite/builder.h"

/* Time until a daemon has seen and reported the first death, and the post-mortem has settled. */
#define AFTERWARDS_S 30u
/* We expect a page only if it is due this much earlier than the watchdog. */
#define CLEARLY_S 30u

/* Writes the launcher. Returns how many seconds ranks may live on after the first failure. */
static uint32_t put_launcher(struct builder *d)
{
	static const uint32_t graces[] = { 5, 10, 30 };
	uint32_t grace = BUILDER_ONE(d, graces);
	uint32_t apart = builder_chance(d, 50) ? 0 : builder_pick(d, 1, 60);

	builder_put(d, "launcher grace %us apart %us", grace, apart);
	if (builder_chance(d, 30))
		builder_put(d, " saves %us", builder_pick(d, 2, 40));
	builder_put(d, "\n");
	return grace + apart;
}

bool draw_ended_by_launcher(struct builder *d, const char *answer)
{
	uint32_t lives_s;

	if (!builder_chance(d, 25))
		return false;
	lives_s = put_launcher(d);
	builder_put(d, "run %us\nexpect silence or %s %s\n", d->at_s + lives_s + AFTERWARDS_S,
		    answer, draw_process(d));
	builder_put(d, "expect postmortem %s %s\n", answer, draw_process(d));
	return true;
}

/* Writes the run time and the answers. after_s: the time until the first rank aborts. */
static void put_expected(struct builder *d, uint32_t after_s, uint32_t lives_s, uint32_t page_s,
			 const char *answer)
{
	builder_put(d, "run %us\n", d->at_s + after_s + lives_s + AFTERWARDS_S);
	if (page_s == DRAW_NO_PAGE)
		builder_put(d, "expect silence\n");
	else
		builder_put(d, "expect %s%s\n",
			    page_s == DRAW_MAY_PAGE || after_s < page_s + CLEARLY_S ? "silence or "
										    : "",
			    answer);
	builder_put(d, "expect postmortem %s\n", answer);
}

bool draw_ended_by_watchdog(struct builder *d, uint32_t page_s, const char *answer)
{
	static const uint32_t after[] = { 15, 30, 45, 60, 90, 120, 180, 300, 600 };
	uint32_t after_s = BUILDER_ONE(d, after), lives_s;
	bool is_known = builder_chance(d, 50), is_one = builder_chance(d, 30);

	/* A harmless fault may delay the ranks for longer than the watchdog waits. */
	if (d->is_noisy || !builder_chance(d, 20))
		return false;
	builder_put(d, "watchdog %us", after_s);
	if (is_one)
		builder_put(d, " of %u",
			    (d->culprit + builder_pick(d, 1, d->n_ranks - 1)) % d->n_ranks);
	builder_put(d, "\n");
	if (is_known)
		builder_put(d, "job-timeout %us\n", after_s);
	/* The rank that others wait for has no reason to abort, so the launcher ends it. */
	lives_s = put_launcher(d);
	put_expected(d, after_s, lives_s, page_s, answer);
	return true;
}

bool draw_ended_by_errors(struct builder *d, uint32_t page_s, const char *answer)
{
	static const char *const who[] = { "all", "odd", "even" };
	uint32_t after_s =
		builder_chance(d, 50) ? builder_pick(d, 20, 40) : builder_pick(d, 40, 240);
	uint32_t lives_s;

	if (d->is_noisy || !builder_chance(d, 15))
		return false;
	builder_put(d, "fault %s at %us on main errors\n", BUILDER_ONE(d, who), d->at_s + after_s);
	if (builder_chance(d, 30)) {
		/* Here no watchdog checks for these errors, and no launcher ends the ranks. */
		builder_put(d, "run %us\nwhole\nexpect %s\n", d->at_s + after_s + page_s, answer);
		return true;
	}
	builder_put(d, "watchdog 3600s\n");
	lives_s = put_launcher(d);
	put_expected(d, after_s, lives_s, page_s, answer);
	return true;
}
