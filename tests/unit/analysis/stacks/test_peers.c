/* SPDX-License-Identifier: Apache-2.0 */
/* Two pipeline stages of four ranks each, 0-3 and 4-7, unless a test says otherwise. */
#include "analysis/stacks/peers.h"

#include <criterion/criterion.h>
#include <string.h>

#define RANKS 8u
#define NONE CW_SNAP_NONE

static struct cw_snapshot *snap;
static uint32_t got[RANKS];

static void set_up(void)
{
	uint32_t index;

	snap = cw_snapshot_new();
	cr_assert_eq(cw_snapshot_add_node(snap, "node", &index), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct cw_snap_rank rank = { .rank = (int32_t)i };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
}

static void tear_down(void)
{
	snap = cw_snapshot_free(snap);
}

TestSuite(peers, .init = set_up, .fini = tear_down);

/* A comm of n ranks first, first + stride, … that made `calls` collectives. */
static void add_comm(const char *name, uint32_t first, uint32_t n, uint32_t stride, uint64_t calls)
{
	struct cw_snap_comm comm = { .id = snap->n_comms + 1, .nranks = n, .name = name };
	uint32_t index;

	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t m = 0; m < n; m++) {
		struct cw_snap_member member = { .rank = first + m * stride,
						 .coll_entered = calls };

		cr_assert_eq(cw_snapshot_set_member(snap, index, m, &member), 0);
	}
}

/* A comm of n ranks in which each member exchanges messages with those at these distances. */
static void add_exchange(uint32_t first, uint32_t n, uint32_t stride, bool is_with_all)
{
	struct cw_snap_comm comm = { .id = snap->n_comms + 1, .nranks = n };
	uint32_t index;

	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t m = 0; m < n; m++) {
		struct cw_p2p_peer p2p[RANKS];
		struct cw_snap_member member = { .rank = first + m * stride, .p2p = p2p };

		for (uint32_t i = 0; i < n; i++)
			if (i != m && (is_with_all || i == m + 1 || m == i + 1))
				p2p[member.n_p2p++] = (struct cw_p2p_peer){ i, 3, 3, 0, 0 };
		cr_assert_eq(cw_snapshot_set_member(snap, index, m, &member), 0);
	}
}

static void expect(const uint32_t groups[RANKS])
{
	cr_assert_eq(cw_peers_find(snap, got), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		cr_expect_eq(got[i], groups[i], "rank %u: %u and not %u", i, got[i], groups[i]);
}

Test(peers, members_of_a_communicator_are_peers)
{
	add_comm(NULL, 0, RANKS, 1, 9);
	expect((uint32_t[]){ 0, 0, 0, 0, 0, 0, 0, 0 });
}

Test(peers, stages_of_a_pipeline_are_none)
{
	add_comm(NULL, 0, RANKS, 1, 9);
	add_comm(NULL, 0, 4, 1, 9);
	add_comm(NULL, 4, 4, 1, 9);
	for (uint32_t i = 0; i < 4; i++)
		add_exchange(i, 2, 4, false);
	expect((uint32_t[]){ 0, 0, 0, 0, 4, 4, 4, 4 });
}

Test(peers, a_pipeline_is_known_before_its_first_send)
{
	add_comm("dp", 0, 4, 1, 9);
	add_comm("dp", 4, 4, 1, 9);
	add_comm("world", 0, RANKS, 1, 0);
	for (uint32_t i = 0; i < 4; i++)
		add_comm(NULL, i, 2, 4, 0); /* without a call, and without a name */
	expect((uint32_t[]){ 0, 0, 0, 0, 4, 4, 4, 4 });
}

Test(peers, a_pipeline_is_known_by_its_name)
{
	static const char *const names[] = { "pp", "mesh_pp", "PP_0", "PIPELINE_MODEL_PARALLEL" };

	add_comm("dp", 0, 4, 1, 9);
	add_comm("dp", 4, 4, 1, 9);
	for (uint32_t i = 0; i < 4; i++)
		add_comm(names[i], i, 2, 4, 9);
	expect((uint32_t[]){ 0, 0, 0, 0, 4, 4, 4, 4 });
}

Test(peers, other_names_are_no_pipeline)
{
	static const char *const names[] = { "ppo", "app", "mapped", NULL };

	for (uint32_t i = 0; i < 4; i++)
		add_comm(names[i], i, 2, 4, 9);
	expect((uint32_t[]){ 0, 1, 2, 3, 0, 1, 2, 3 });
}

Test(peers, first_and_last_stage_share_a_communicator)
{
	add_comm("dp", 0, 2, 1, 9);
	add_comm("dp", 2, 2, 1, 9);
	add_comm("dp", 4, 2, 1, 9);
	add_comm("dp", 6, 2, 1, 9);
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t p = 0; p < 3; p++)
			add_exchange(2 * p + i, 2, 2, false);
		add_comm("embedding", i, 2, 6, 9);
	}
	expect((uint32_t[]){ 0, 0, 2, 2, 4, 4, 6, 6 });
}

Test(peers, ranks_with_other_communicators_have_another_role)
{
	add_comm(NULL, 0, RANKS, 1, 9);
	add_comm("embedding", 0, 2, 7, 9);
	expect((uint32_t[]){ 0, 1, 1, 1, 1, 1, 1, 0 });
}

Test(peers, an_all_to_all_is_no_pipeline)
{
	add_comm(NULL, 0, RANKS, 1, 9);
	add_exchange(0, RANKS, 1, true);
	expect((uint32_t[]){ 0, 0, 0, 0, 0, 0, 0, 0 });
}

Test(peers, peers_of_peers_in_one_pipeline_are_none)
{
	add_exchange(0, 2, 7, false);
	for (uint32_t i = 0; i + 1 < RANKS; i++)
		add_comm(NULL, i, 2, 1, 9);
	expect((uint32_t[]){ NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE });
}

Test(peers, without_communicators_the_outer_ranks_have_none)
{
	expect((uint32_t[]){ NONE, NONE, 2, 2, 2, 2, NONE, NONE });
}
