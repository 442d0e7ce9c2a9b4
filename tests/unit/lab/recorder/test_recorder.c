/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that one process draws, as a daemon's reader sees their records. */
#include "lab/recorder/recorder.h"

#include <criterion/criterion.h>

#include "common/clock.h"
#include "record/record_reader.h"

#define RANKS 3
#define BEGIN_NS (1000 * CW_NS_PER_S)

static struct recorder *ranks[RANKS];
static struct cw_record *readers[RANKS];
static int comms[RANKS];
static int64_t now_ns = BEGIN_NS;

static void set_up(void)
{
	for (int i = 0; i < RANKS; i++) {
		struct recorder_config config = { .rank = i,
						  .world_size = RANKS,
						  .pid = (uint32_t)(100 + i),
						  .start_ticks = 7,
						  .job_label = "drawn",
						  .nccl_version = 22809,
						  .has_progress = true,
						  .now_ns = now_ns,
						  .wall_ns = 5 };
		struct recorder_comm comm = { .comm_id = 0x11,
					      .nranks = RANKS,
					      .comm_rank = i,
					      .device = i,
					      .name = "world" };
		const void *memory;
		size_t bytes;

		ranks[i] = recorder_new(&config);
		comms[i] = recorder_comm(ranks[i], &comm, now_ns);
		cr_assert_geq(comms[i], 0);
		recorder_comm_state(ranks[i], comms[i], CW_COMM_READY, now_ns);
		memory = recorder_memory(ranks[i], &bytes);
		cr_assert_eq(cw_record_open_memory(memory, bytes, &readers[i], NULL), 0);
	}
}

static void tear_down(void)
{
	for (int i = 0; i < RANKS; i++) {
		cw_record_close(readers[i]);
		ranks[i] = recorder_free(ranks[i]);
	}
}

TestSuite(recorder, .init = set_up, .fini = tear_down);

static const struct recorder_op sum = {
	.kind = CW_OP_ALL_REDUCE,
	.dtype = CW_DTYPE_FP32,
	.redop = CW_REDOP_SUM,
	.root_or_peer = CW_PEER_NONE,
	.count = 100,
	.stream = 0x1000,
};

static struct cw_record_state state_of(int i)
{
	struct cw_record_state state;
	const struct cw_record_comm *v;
	size_t n;

	cr_assert_eq(cw_record_refresh(readers[i]), 0);
	v = cw_record_comms(readers[i], &n);
	cr_assert_eq(n, 1);
	cr_assert_eq(cw_record_state(readers[i], v, &state), 0);
	return state;
}

static const struct cw_rec_comm *entry_of(int i)
{
	size_t n;

	cr_assert_eq(cw_record_refresh(readers[i]), 0);
	return &cw_record_comms(readers[i], &n)->entry;
}

Test(recorder, records_are_those_of_their_ranks)
{
	for (int i = 0; i < RANKS; i++) {
		const struct cw_rec_header *h = cw_record_header(readers[i]);
		const struct cw_rec_comm *e = entry_of(i);

		cr_expect_eq(h->rank_label, i);
		cr_expect_eq(h->pid, 100 + (uint32_t)i);
		cr_expect_str_eq(h->job_label, "drawn");
		cr_expect_eq(h->created_ns, BEGIN_NS);
		cr_expect_eq(e->comm_id, 0x11);
		cr_expect_eq(e->comm_rank, i);
		cr_expect_eq(e->state, CW_COMM_READY);
		cr_expect_str_eq(e->name, "world");
	}
}

Test(recorder, calls_of_ranks_in_turns_do_not_mix)
{
	for (int step = 1; step <= 300; step++) {
		for (int i = 0; i < RANKS; i++)
			recorder_enter(ranks[i], comms[i], &sum, now_ns += 1000);
		for (int i = 0; i < RANKS; i++)
			recorder_leave(ranks[i], now_ns += 1000);
		for (int i = 0; i < RANKS; i++)
			recorder_device(ranks[i], comms[i], (uint64_t)step,
					(uint64_t)step - (i == 2));
	}
	for (int i = 0; i < RANKS; i++) {
		struct cw_record_state s = state_of(i);

		cr_expect_eq(entry_of(i)->coll_entered, 300);
		cr_expect_eq(entry_of(i)->coll_returned, 300);
		cr_expect_eq(entry_of(i)->hash, entry_of(0)->hash, "the same history");
		cr_expect(s.completed_known);
		cr_expect_eq(s.coll_reached, 300);
		cr_expect_eq(s.coll_completed, i == 2 ? 299 : 300);
		cr_expect_eq(s.has_pending, i == 2);
		cr_expect_eq(s.last.tid, 100 + (uint32_t)i);
		cr_expect_gt(s.last.enter_mono_ns, BEGIN_NS);
		cr_expect_lt(s.last.enter_mono_ns, s.last.return_mono_ns);
	}
}

/* One rank has queued calls in an open group while another makes its own. */
Test(recorder, groups_that_are_open_at_the_same_time_do_not_mix)
{
	struct recorder_op send = sum, recv = sum;

	send.kind = CW_OP_SEND;
	recv.kind = CW_OP_RECV;
	send.redop = recv.redop = CW_REDOP_NONE;
	for (int i = 0; i < 2; i++) {
		send.root_or_peer = recv.root_or_peer = 2;
		recorder_group_begin(ranks[i], now_ns);
		for (int n = 0; n <= i; n++)
			recorder_enter(ranks[i], comms[i], &send, now_ns += 1000);
		recorder_enter(ranks[i], comms[i], &recv, now_ns += 1000);
		recorder_group_launch(ranks[i], now_ns);
	}
	cr_expect_eq(state_of(0).pending_count, 2);
	cr_expect_eq(entry_of(0)->p2p_total[0], 0);
	for (int i = 0; i < 2; i++)
		recorder_group_leave(ranks[i], now_ns += 1000);
	for (int i = 0; i < 2; i++) {
		struct cw_p2p_peer peers[4];
		const struct cw_record_comm *v;
		size_t n;

		cr_assert_eq(cw_record_refresh(readers[i]), 0);
		v = cw_record_comms(readers[i], &n);
		cr_assert_eq(cw_record_p2p(readers[i], v, peers, 4, &n), 0);
		cr_assert_eq(n, 1);
		cr_expect_eq(peers[0].peer, 2);
		cr_expect_eq(peers[0].sends, (uint64_t)i + 1);
		cr_expect_eq(peers[0].recvs, 1);
		cr_expect_eq(state_of(i).pending_count, (uint32_t)i + 2,
			     "no device has come to it");
		recorder_device(ranks[i], comms[i], 9, 9);
		cr_expect_eq(state_of(i).pending_count, 0);
	}
}

Test(recorder, call_that_makes_a_communicator_is_seen_while_it_waits)
{
	struct recorder_comm comm = {
		.comm_id = 0x22, .nranks = 2, .comm_rank = 1, .device = 1, .name = "pair"
	};
	int c = recorder_comm(ranks[1], &comm, now_ns);
	struct cw_record_op call;

	recorder_block(ranks[1], c, CW_OP_COMM_INIT, true, now_ns += 1000);
	recorder_beat(ranks[0], now_ns += CW_NS_PER_S);
	cr_assert_eq(cw_record_refresh(readers[1]), 0);
	call = cw_record_host_call(readers[1]);
	cr_expect_eq(call.kind, CW_OP_COMM_INIT);
	cr_expect_eq(cw_record_header(readers[1])->host_call_comm_id, 0x22);
	recorder_unblock(ranks[1], now_ns += 1000);
	cr_assert_eq(cw_record_refresh(readers[1]), 0);
	cr_expect_eq(cw_record_host_call(readers[1]).kind, CW_OP_NONE);
	cr_expect_eq(cw_record_host_call(readers[0]).kind, CW_OP_NONE);
}
