/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that is late because it waited for another rank is not slow. Nine ranks in rows and
 * columns of three wait in a collective of the row, then in one of the column.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/slow/slow.h"
#include "tests/support/snapshot/snap_builder.h"

#define SIDE 3u
#define RANKS (SIDE * SIDE)
#define COMMS (2 * SIDE) /* rows, then columns */
#define STEPS 16u
#define MS (SB_S / 1000)

static struct cw_snapshot *snap;
static struct cw_slow_list slow;
static struct cw_op ops[RANKS][2][STEPS * 2]; /* by rank, in its row and column */
static uint32_t n_ops[RANKS][2];
static int64_t now[RANKS];
static int64_t clock_ns[2]; /* by node: how far off its times are */
static uint32_t n_nodes;

static void init(void)
{
	memset(ops, 0, sizeof(ops));
	memset(n_ops, 0, sizeof(n_ops));
	memset(clock_ns, 0, sizeof(clock_ns));
	n_nodes = 1;
	for (uint32_t r = 0; r < RANKS; r++)
		now[r] = SB_S;
}

static void fini(void)
{
	snap = cw_snapshot_free(snap);
}

TestSuite(slow_wait, .init = init, .fini = fini);

static uint32_t member_of(uint32_t line, uint32_t i, bool is_column)
{
	return is_column ? i * SIDE + line : line * SIDE + i;
}

static struct cw_op *enter(uint32_t rank, bool is_column, unsigned kind)
{
	struct cw_op *op = &ops[rank][is_column][n_ops[rank][is_column]++];

	*op = (struct cw_op){ .kind = (uint8_t)kind,
			      .flags = CW_OPF_RETURNED,
			      .peer = CW_PEER_NONE,
			      .op_index = n_ops[rank][is_column],
			      .enter_ns = now[rank] + clock_ns[rank * n_nodes / RANKS] };
	return op;
}

/* All of a row or column enter their next collective, and go on when the last has come. */
static void meet(bool is_column, uint64_t seq)
{
	for (uint32_t line = 0; line < SIDE; line++) {
		int64_t last = 0;

		for (uint32_t i = 0; i < SIDE; i++) {
			uint32_t rank = member_of(line, i, is_column);

			enter(rank, is_column, CW_OP_ALL_REDUCE)->coll_seq = seq;
			last = now[rank] > last ? now[rank] : last;
		}
		for (uint32_t i = 0; i < SIDE; i++)
			now[member_of(line, i, is_column)] = last;
	}
}

static void hand_over(uint32_t from, uint32_t to, uint64_t seq)
{
	struct cw_op *op = enter(from, true, CW_OP_SEND);

	op->p2p_seq = seq;
	op->peer = (int32_t)(to / SIDE);
	op = enter(to, true, CW_OP_RECV);
	op->p2p_seq = seq;
	op->peer = (int32_t)(from / SIDE);
	now[from] = now[to] = now[from] > now[to] ? now[from] : now[to];
}

static void work(int64_t ns)
{
	for (uint32_t r = 0; r < RANKS; r++)
		now[r] += ns;
}

static void find(void)
{
	uint32_t index;

	snap = cw_snapshot_new();
	cr_assert(snap);
	for (uint32_t n = 0; n < n_nodes; n++)
		cr_assert_eq(cw_snapshot_add_node(snap, "node", &index), 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct cw_snap_rank rank = { .rank = (int32_t)r, .node = r * n_nodes / RANKS };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
	for (uint32_t c = 0; c < COMMS; c++) {
		struct cw_snap_comm comm = { .id = 7 + c, .nranks = SIDE, .name = "line" };
		bool is_column = c >= SIDE;

		cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
		for (uint32_t i = 0; i < SIDE; i++) {
			uint32_t rank = member_of(c % SIDE, i, is_column);
			struct cw_snap_member member = { .rank = rank,
							 .window = ops[rank][is_column],
							 .n_window = n_ops[rank][is_column] };

			cr_assert_eq(cw_snapshot_set_member(snap, index, i, &member), 0);
		}
	}
	cr_assert_eq(cw_slow_find(snap, &slow), 0);
}

static void expect_only(int32_t rank)
{
	find();
	cr_assert_eq(slow.n, 1, "%u ranks", slow.n);
	cr_expect_eq(snap->ranks[slow.v[0].rank].rank, rank);
}

Test(slow_wait, who_waited_in_its_row_is_not_slow_in_its_column)
{
	for (uint64_t i = 1; i <= STEPS; i++) {
		work(60 * MS);
		now[4] += 100 * MS;
		meet(false, i);
		work(10 * MS);
		meet(true, i);
	}
	expect_only(4);
}

/* 5 seems to enter the column's call before 4 came to that of the row. */
Test(slow_wait, who_waited_for_another_host_is_not_slow_by_its_clock)
{
	n_nodes = 2;
	clock_ns[1] = -30 * MS;
	for (uint64_t i = 1; i <= STEPS; i++) {
		work(60 * MS);
		now[4] += 200 * MS;
		meet(false, i);
		meet(true, i);
	}
	expect_only(4);
}

Test(slow_wait, who_waited_for_a_message_is_not_slow)
{
	for (uint64_t i = 1; i <= STEPS; i++) {
		work(60 * MS);
		meet(false, i);
		now[1] += 100 * MS;
		hand_over(1, 4, i);
	}
	expect_only(1);
}

/* They wait for no rank in their row: their own work takes longer. */
Test(slow_wait, a_row_that_works_longer_is_slow_in_its_columns)
{
	for (uint64_t i = 1; i <= STEPS; i++) {
		work(60 * MS);
		for (uint32_t k = 3; k < 6; k++)
			now[k] += 100 * MS;
		meet(false, i);
		meet(true, i);
	}
	find();
	cr_assert_eq(slow.n, 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(snap->ranks[slow.v[i].rank].rank, (int32_t)i + 3);
}

/* No other call is entered ahead of it: each loses a little, and all of it at the end. */
Test(slow_wait, what_is_lost_in_several_calls_adds_up)
{
	for (uint64_t i = 1; i <= STEPS; i++) {
		work(60 * MS);
		for (uint32_t r = 0; r < RANKS; r++) {
			enter(r, false, CW_OP_ALL_REDUCE)->coll_seq = 2 * i - 1;
			now[r] += r == 4 ? 60 * MS : MS;
		}
		now[4] += 60 * MS;
		meet(false, 2 * i);
	}
	expect_only(4);
	cr_expect_gt(slow.v[0].late_ns, 110 * MS);
}
