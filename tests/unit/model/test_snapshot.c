/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "model/snapshot.h"

static struct cw_snapshot *snap;

static void setup(void)
{
	snap = cw_snapshot_new();
	cr_assert(snap);
}

static void teardown(void)
{
	snap = cw_snapshot_free(snap);
}

TestSuite(snapshot, .init = setup, .fini = teardown);

static uint32_t add_comm(uint64_t id, uint32_t instance, uint32_t nranks)
{
	struct cw_snap_comm comm = { .id = id, .instance = instance, .nranks = nranks };
	uint32_t index = CW_SNAP_NONE;

	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	return index;
}

static uint32_t add_rank(int32_t label)
{
	struct cw_snap_rank rank = { .rank = label };
	uint32_t index = CW_SNAP_NONE;

	cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	return index;
}

Test(snapshot, starts_empty_with_the_documented_thresholds)
{
	cr_expect_eq(snap->n_ranks + snap->n_comms + snap->n_nodes + snap->n_notes, 0);
	cr_expect_eq(snap->thresholds.stall_min_ns, INT64_C(10000000000));
	cr_expect_eq(snap->thresholds.no_progress_after_ns, INT64_C(60000000000));
	cr_expect_eq(cw_snapshot_find_comm(snap, 1, 0), CW_SNAP_NONE);
}

Test(snapshot, copies_the_strings_it_is_given)
{
	char text[] = "train";
	char by[] = "cpu";
	struct cw_snap_rank rank = { .rank = 0, .host_activity_by = by };
	uint32_t index;

	cr_assert_eq(cw_snapshot_set_job(snap, text, NULL), 0);
	cr_assert_eq(cw_snapshot_add_note(snap, text), 0);
	cr_assert_eq(cw_snapshot_add_node(snap, text, &index), 0);
	cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	memset(text, 'x', 5);
	memset(by, 'x', 3);
	cr_expect_str_eq(snap->job, "train");
	cr_expect_null(snap->group);
	cr_expect_str_eq(snap->notes[0], "train");
	cr_expect_str_eq(snap->nodes[0].name, "train");
	cr_expect_str_eq(snap->ranks[0].host_activity_by, "cpu");
	cr_expect_null(snap->ranks[0].command);
}

Test(snapshot, finds_comms_by_id_and_instance)
{
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(add_comm(i / 2, i % 2, 1), i);
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(cw_snapshot_find_comm(snap, i / 2, i % 2), i);
	cr_expect_eq(cw_snapshot_find_comm(snap, 3, 2), CW_SNAP_NONE);
}

Test(snapshot, has_no_members_until_they_are_set)
{
	uint32_t c = add_comm(1, 0, 3);

	for (uint32_t m = 0; m < 3; m++)
		cr_expect_eq(snap->comms[c].members[m].rank, CW_SNAP_NONE);
}

Test(snapshot, refuses_members_that_do_not_fit)
{
	uint32_t c = add_comm(1, 0, 2);
	struct cw_snap_member m = { .rank = add_rank(0) };

	cr_expect_eq(cw_snapshot_set_member(snap, c + 1, 0, &m), -EINVAL);
	cr_expect_eq(cw_snapshot_set_member(snap, c, 2, &m), -EINVAL);
	cr_expect_eq(cw_snapshot_set_member(snap, c, 1, &m), 0);
	cr_expect_eq(cw_snapshot_set_member(snap, c, 1, &m), -EINVAL, "the place is taken");
	m.rank = 7;
	cr_expect_eq(cw_snapshot_set_member(snap, c, 0, &m), -EINVAL, "there is no such rank");
}

Test(snapshot, copies_the_ops_of_a_member)
{
	struct cw_op ops[2] = { { .coll_seq = 1 }, { .coll_seq = 2 } };
	struct cw_p2p_peer peers[2] = { { .peer = 9 }, { .peer = 4 } };
	struct cw_snap_member m = { .rank = add_rank(0),
				    .pending = &ops[1],
				    .last = &ops[1],
				    .window = ops,
				    .n_window = 2,
				    .p2p = peers,
				    .n_p2p = 2,
				    .last_error = "boom" };
	uint32_t c = add_comm(1, 0, 1);
	const struct cw_snap_member *copy;

	cr_assert_eq(cw_snapshot_set_member(snap, c, 0, &m), 0);
	memset(ops, 0, sizeof(ops));
	copy = &snap->comms[c].members[0];
	cr_expect_eq(copy->pending->coll_seq, 2);
	cr_expect_eq(copy->window[0].coll_seq, 1);
	cr_expect_str_eq(copy->last_error, "boom");
	cr_expect_eq(copy->p2p[0].peer, 4, "peers are sorted");
}

Test(snapshot, replaces_windows)
{
	struct cw_op ops[4] = { { .coll_seq = 1 }, { .coll_seq = 2 }, { .coll_seq = 3 } };
	struct cw_snap_member m = { .rank = add_rank(0) };
	uint32_t c = add_comm(1, 0, 2);
	const struct cw_snap_member *copy = &snap->comms[c].members[0];

	cr_expect_eq(cw_snapshot_set_window(snap, c, 0, ops, 1, 0, 5), -EINVAL, "no member");
	cr_assert_eq(cw_snapshot_set_member(snap, c, 0, &m), 0);
	cr_expect_null(copy->window);
	cr_assert_eq(cw_snapshot_set_window(snap, c, 0, ops, 1, 3, 5), 0);
	cr_expect_eq(copy->n_window, 1);
	cr_expect_eq(copy->window_lost, 3);
	cr_expect_eq(copy->window_ns, 5);
	cr_assert_eq(cw_snapshot_set_window(snap, c, 0, &ops[1], 2, 0, 6), 0);
	cr_expect_eq(copy->n_window, 2);
	cr_expect_eq(copy->window[1].coll_seq, 3);
	cr_assert_eq(cw_snapshot_set_window(snap, c, 0, NULL, 0, 0, 7), 0);
	cr_expect_eq(copy->n_window, 0);
}

Test(snapshot, has_limits)
{
	struct cw_snap_comm comm = { .id = 1, .nranks = CW_SNAP_MAX_MEMBERS + 1 };
	struct cw_snap_member m = { .rank = add_rank(0), .n_window = UINT32_MAX };
	uint32_t index = 42, c = add_comm(1, 0, 1);

	cr_expect_eq(cw_snapshot_add_comm(snap, &comm, &index), -E2BIG);
	cr_expect_eq(index, 42);
	cr_expect_eq(cw_snapshot_set_member(snap, c, 0, &m), -E2BIG);
	for (uint32_t i = 0; i < 1024; i++)
		cr_assert_eq(cw_snapshot_add_note(snap, "note"), 0);
	cr_expect_eq(cw_snapshot_add_note(snap, "one too many"), -E2BIG);
}

Test(snapshot, keeps_indices_while_it_grows)
{
	for (int32_t i = 0; i < 5000; i++)
		cr_assert_eq(add_rank(i), (uint32_t)i);
	for (int32_t i = 0; i < 5000; i++)
		cr_assert_eq(snap->ranks[i].rank, i);
}

Test(snapshot, keeps_times_within_bounds)
{
	struct cw_op op = { .enter_ns = INT64_MIN, .return_ns = INT64_MAX };
	struct cw_snap_member m = { .rank = add_rank(0), .last = &op, .interval_ns = -5 };
	uint32_t c = add_comm(1, 0, 1);
	const struct cw_snap_member *copy = &snap->comms[c].members[0];

	cr_assert_eq(cw_snapshot_set_member(snap, c, 0, &m), 0);
	cr_expect_eq(copy->last->enter_ns, -(INT64_MAX / 2));
	cr_expect_eq(copy->last->return_ns, INT64_MAX / 2);
	cr_expect_eq(copy->interval_ns, 0);
}

/* A leader makes one each second out of the memory of the last. */
Test(snapshot, is_as_new_after_a_reset)
{
	for (uint32_t round = 0; round < 20; round++) {
		struct cw_op op = { .coll_seq = 7 + round };
		struct cw_snap_member member = { .last = &op, .last_error = "broken" };
		/* Some rounds need more, some less. */
		uint32_t nranks = round % 3 ? 20000 : 40, comm;

		snap->policy = CW_POLICY_OFF;
		cr_assert_eq(cw_snapshot_set_job(snap, "job", "RANK"), 0);
		cr_assert_eq(cw_snapshot_add_note(snap, "a note"), 0);
		member.rank = add_rank(3);
		for (uint64_t id = 1; id <= 30; id++)
			comm = add_comm(id, round, nranks);
		for (uint32_t m = 0; m < nranks; m++) {
			cr_assert_eq(snap->comms[comm].members[m].rank, CW_SNAP_NONE);
			cr_assert_null(snap->comms[comm].members[m].last);
			cr_assert_eq(snap->comms[comm].members[m].coll_entered, 0);
			member.coll_entered = m + 1;
			cr_assert_eq(cw_snapshot_set_member(snap, comm, m, &member), 0);
		}
		cr_expect_eq(snap->comms[comm].members[1].last->coll_seq, 7 + round);
		cr_expect_eq(cw_snapshot_find_comm(snap, 30, round), comm);
		cw_snapshot_reset(snap);
		cr_expect_eq(snap->n_ranks + snap->n_comms + snap->n_nodes + snap->n_notes, 0);
		cr_expect_null(snap->job);
		cr_expect_eq(snap->policy, CW_POLICY_TRAINING);
		cr_expect_eq(cw_snapshot_find_comm(snap, 30, round), CW_SNAP_NONE);
	}
}

Test(snapshot, memory_used_before_does_not_show_in_places_that_nobody_took)
{
	const struct cw_snap_comm comm = { .id = 1, .nranks = 300 };
	const struct cw_snap_member zero = { .rank = CW_SNAP_NONE };
	struct cw_snap_member *m;
	uint32_t c, r;

	for (unsigned round = 0; round < 2; round++) {
		r = add_rank(0);
		cr_assert_eq(cw_snapshot_add_comm_raw(snap, &comm, &c), 0);
		for (uint32_t i = round; i < 300; i += 1 + round) {
			cr_assert_eq(cw_snapshot_claim_member(snap, c, i, r, &m), 0);
			cr_expect_eq(m->known, 0);
			m->known = CW_KNOWN_ENTERED;
			m->coll_entered = 7;
		}
		cw_snapshot_clear_unclaimed(snap);
		if (round == 0)
			cw_snapshot_reset(snap);
	}
	for (uint32_t i = 0; i < 300; i += 2)
		cr_expect_arr_eq(&snap->comms[c].members[i], &zero, sizeof(zero));
	cr_expect_eq(snap->comms[c].members[1].coll_entered, 7);
}
