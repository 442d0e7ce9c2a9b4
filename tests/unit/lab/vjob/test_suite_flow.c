/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that each rank completes when one member never comes, as in NCCL's device code. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lab/suite/watch.h"

#define S INT64_C(1000000000)
#define RANKS 6u
#define SLOTS 8u /* NCCL_STEPS */

static uint64_t completed[RANKS], reached[RANKS];

static int look(void *user, const struct suite_scenario *s)
{
	struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };

	(void)user;
	cr_assert_eq(cw_watch_snapshot(s, 30 * S, &err, &snap), 0, "%s", err.text);
	for (uint32_t m = 0; m < RANKS; m++) {
		completed[m] = snap->comms[0].members[m].coll_completed;
		reached[m] = snap->comms[0].members[m].coll_reached;
	}
	(void)cw_snapshot_free(snap);
	return 0;
}

/* Six ranks call it over and over; one of them never comes to it after 10 s. */
static void run(const char *completion, unsigned seed, const char *call, const char *fault)
{
	struct cw_err err = { "" };
	char text[1024];
	int n = snprintf(text, sizeof(text),
			 "scenario s\nranks %u per-node 3\nseed %u\ncompletion %s\n"
			 "comm world all\nprogram\nloop\nwork 20ms\n%s\nsync\nend\nend\n%s\n"
			 "expect silence\nend\n",
			 RANKS, seed, completion, call, fault);

	cr_assert_eq(cw_suite_read_text(text, (size_t)n, "t", 1000, look, NULL, &err), 0, "%s",
		     err.text);
}

static uint64_t most(const uint64_t *n)
{
	uint64_t best = 0;

	for (uint32_t m = 0; m < RANKS; m++)
		best = n[m] > best ? n[m] : best;
	return best;
}

static uint64_t least(const uint64_t *n)
{
	uint64_t best = n[0];

	for (uint32_t m = 0; m < RANKS; m++)
		best = n[m] < best ? n[m] : best;
	return best;
}

#define ABSENT "fault 4 at 10s on world block"

Test(suite_flow, without_a_fault_everybody_completes_all_kinds)
{
	static const char *const kinds[] = { "all_reduce",     "broadcast",  "reduce", "all_gather",
					     "reduce_scatter", "all_to_all", "gather", "scatter" };
	char call[64];

	for (unsigned seed = 1; seed <= 20; seed++)
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			(void)snprintf(call, sizeof(call), "%s world 40000", kinds[k]);
			run("nccl", seed, call, "");
			cr_expect_gt(least(completed), 1000, "%s, seed %u", kinds[k], seed);
		}
}

Test(suite_flow, a_barrier_lets_nobody_out_before_all_have_come)
{
	run("barrier", 1, "broadcast world 16", ABSENT);
	cr_expect_eq(most(completed), least(completed));
}

/* The root only sends: it is ahead by the capacity of the slots, and not by more. */
Test(suite_flow, a_broadcast_lets_its_root_run_ahead_as_far_as_slots_go)
{
	uint64_t furthest = 0;

	for (unsigned seed = 1; seed <= 40; seed++) {
		run("nccl", seed, "broadcast world 16", ABSENT);
		cr_expect_leq(most(completed) - completed[4], SLOTS * (RANKS - 1));
		cr_expect_eq(completed[0], most(completed), "no rank is ahead of the root");
		if (completed[0] - completed[4] > furthest)
			furthest = completed[0] - completed[4];
	}
	cr_expect_geq(furthest, SLOTS);
}

Test(suite_flow, a_reduce_never_completes_on_its_root_without_all)
{
	bool anybody_ahead = false;

	for (unsigned seed = 1; seed <= 40; seed++) {
		run("nccl", seed, "reduce world 16", ABSENT);
		cr_expect_eq(completed[0], completed[4]);
		anybody_ahead = anybody_ahead || most(completed) > completed[0];
	}
	cr_expect(anybody_ahead);
}

Test(suite_flow, leaves_of_a_gather_leave_and_its_root_stays)
{
	unsigned ahead = 0;

	for (unsigned seed = 1; seed <= 20; seed++) {
		run("nccl", seed, "gather world 16", ABSENT);
		cr_expect_eq(completed[0], completed[4]);
		ahead += completed[1] > completed[0] && completed[5] > completed[0];
	}
	/* Not where the transport has no slots, as one in five has none. */
	cr_expect_geq(ahead, 10);
}

Test(suite_flow, nobody_completes_an_all_reduce_that_one_does_not_enter)
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		run("nccl", seed, "all_reduce world 4096", ABSENT);
		cr_expect_eq(most(completed), least(completed));
	}
}

Test(suite_flow, an_all_reduce_in_which_one_stops_ends_on_some_and_not_on_others)
{
	bool partly = false;

	for (unsigned seed = 1; seed <= 40; seed++) {
		run("nccl", seed, "all_reduce world 4096", "fault 2 at 10s on world wedge");
		cr_expect_eq(completed[2], least(completed), "it never completes itself");
		cr_expect_leq(most(completed), least(completed) + 1);
		partly = partly || (most(completed) > least(completed) &&
				    reached[1] > completed[1] && completed[1] == completed[2]);
	}
	cr_expect(partly);
}

/* As NCCL's own code did it, run on a simulated device (docs/lab/real-nccl.md). */
Test(suite_flow, a_small_difference_of_counts_holds_up_nobody)
{
	run("nccl", 3, "all_reduce world 64", "fault 2 at 10s on world change count 31");
	cr_expect_gt(least(completed), 1000);
}
