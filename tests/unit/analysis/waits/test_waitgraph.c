/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "analysis/waits/waitgraph.h"
#include "record/record_layout.h"
#include "tests/support/snapshot/snap_builder.h"

static struct sb *b;
static struct cw_snapshot *snap;
static struct cw_arena arena;
static struct waitgraph g;

static void setup(void)
{
	b = sb_new(6, 1);
}

static void teardown(void)
{
	cw_arena_fini(&arena);
	snap = cw_snapshot_free(snap);
	sb_free(b);
}

TestSuite(waitgraph, .init = setup, .fini = teardown);

static void build(void)
{
	snap = sb_snapshot(b);
	cr_assert_eq(cw_waitgraph_build(snap, &arena, &g), 0);
}

Test(waitgraph, has_no_gates_when_nobody_waits)
{
	(void)sb_comm(b, "world", 0, 6, 1, 3);
	build();
	cr_expect_eq(g.n_gates, 0);
	for (uint32_t r = 0; r < 6; r++)
		cr_expect(!waitgraph_waits(&g, r) && !waitgraph_is_missing(&g, r));
}

Test(waitgraph, puts_all_waiters_of_a_call_at_one_gate)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 6, 1, 3);

	sb_all_wait_but(c, 4, 7 * SB_S);
	build();
	cr_assert_eq(g.n_gates, 1);
	cr_expect_eq(g.gates[0].seq, 4);
	cr_expect_eq(g.gates[0].n_waiters, 5);
	cr_assert_eq(g.gates[0].n_missing, 1);
	cr_expect_eq(g.gates[0].missing[0], 4);
	cr_expect_eq(g.gates[0].since_ns, SB_NOW - 7 * SB_S);
}

Test(waitgraph, lists_newcomers_only_at_a_higher_gate)
{
	/* 0 and 1 are inside #4, 2 inside #6; 3 has done #5, 4 and 5 only #3. */
	struct sb_comm *c = sb_comm(b, "world", 0, 6, 1, 3);

	sb_waits(c, 0, SB_S);
	sb_waits(c, 1, SB_S);
	c->members[2].completed = c->members[2].entered = c->members[2].reached = 5;
	sb_waits(c, 2, SB_S);
	c->members[3].completed = c->members[3].entered = c->members[3].reached = 5;
	build();
	cr_assert_eq(g.n_gates, 2);
	cr_expect_eq(g.gates[0].seq, 4);
	cr_expect_eq(g.gates[0].n_missing, 2);
	cr_expect_eq(g.gates[1].seq, 6);
	cr_expect_eq(g.gates[1].lower, 0);
	cr_expect_eq(g.gates[0].upper, 1);
	/* 0, 1 (inside #4) and 3 join 4 and 5. */
	cr_expect_eq(g.gates[1].n_missing, 3);
	cr_expect_eq(g.gates[1].n_missing_all, 5);
}

Test(waitgraph, waits_for_nobody_alone)
{
	struct sb_comm *c = sb_comm(b, "self", 2, 1, 1, 3);

	sb_waits(c, 0, SB_S);
	build();
	cr_expect_eq(g.n_gates, 0);
}

Test(waitgraph, searches_upstream_through_gates)
{
	/* 0, 1 → 2 (in a), 2 → 3 (in b); 4 and 5 are elsewhere. */
	struct sb_comm *a = sb_comm(b, "a", 0, 3, 1, 3);
	struct sb_comm *c = sb_comm(b, "b", 2, 2, 1, 3);
	struct upstream up;
	uint32_t start = 3;

	sb_all_wait_but(a, 2, SB_S);
	sb_waits(c, 0, SB_S);
	build();
	cr_assert_eq(upstream_init(&g, &arena, &up), 0);
	for (unsigned again = 0; again < 2; again++) {
		upstream_search(&g, &start, 1, &up);
		cr_expect_eq(up.n_order, 6); /* 3, gate b, 2, gate a, 0, 1 */
		cr_expect_eq(up.hops[2], 2);
		cr_expect_eq(up.hops[0], 4);
		cr_expect_eq(up.hops[4], CW_SNAP_NONE);
	}
}

Test(waitgraph, keeps_cycles_together_and_everything_else_apart)
{
	struct sb_comm *a = sb_comm(b, "a", 0, 2, 1, 3);
	struct sb_comm *c = sb_comm(b, "b", 0, 2, 1, 3);
	struct sb_comm *d = sb_comm(b, "c", 1, 2, 1, 3);

	sb_waits(a, 0, SB_S);
	sb_waits(c, 1, SB_S);
	sb_waits(d, 1, SB_S);
	build();
	cr_expect_eq(g.component[0], g.component[1]);
	cr_expect_neq(g.component[0], g.component[2]);
	cr_expect_eq(g.ranks_in[g.component[0]], 2);
	cr_expect_eq(g.ranks_in[g.component[2]], 1);
}

/* The same question, answered by brute force over a matrix. */
#define N 6
static void close_over(bool reach[N][N])
{
	for (unsigned k = 0; k < N; k++)
		for (unsigned i = 0; i < N; i++)
			for (unsigned l = 0; l < N; l++)
				reach[i][l] = reach[i][l] || (reach[i][k] && reach[k][l]);
}

Test(waitgraph, agrees_with_brute_force_on_random_comms)
{
	uint64_t x = 1;

	for (unsigned round = 0; round < 500; round++) {
		bool reach[N][N] = { 0 };

		for (unsigned k = 0; k < 4; k++) {
			struct sb_comm *c = sb_comm(b, "c", 0, N, 1, 10);

			for (uint32_t m = 0; m < N; m++) {
				x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
				c->members[m].completed = c->members[m].entered = 8 + (x >> 61) % 4;
				c->members[m].reached = c->members[m].entered;
				if ((x >> 40) % 4 == 0)
					sb_waits(c, m, SB_S);
			}
			for (uint32_t m = 0; m < N; m++)
				for (uint32_t o = 0; o < N; o++)
					if (c->members[m].entered > c->members[m].completed &&
					    c->members[o].reached < c->members[m].entered)
						reach[m][o] = true;
		}
		close_over(reach);
		build();
		for (unsigned i = 0; i < N; i++)
			for (unsigned l = 0; l < N; l++)
				if (i != l)
					cr_assert_eq(g.component[i] == g.component[l],
						     reach[i][l] && reach[l][i],
						     "round %u, ranks %u and %u", round, i, l);
		cw_arena_fini(&arena);
		snap = cw_snapshot_free(snap);
		sb_clear_comms(b);
	}
}
