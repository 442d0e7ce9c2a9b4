/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_reader.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/cleanup.h"
#include "tests/support/record/record_fixture.h"

TestSuite(record_reader, .init = record_setup, .fini = record_teardown);

Test(record_reader, reads_header_and_comms)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	const struct cw_record_comm *comms;
	size_t n;

	cw_test_record_comm(rec, 0x1111, 8, 3);
	cw_test_record_comm(rec, 0x2222, 4, 1);
	rec->comms[0].state = CW_COMM_FREE;
	r = record_must_open();
	comms = cw_record_comms(r, &n);
	cr_assert_eq(n, 1u);
	cr_expect_eq(comms[0].index, 1u);
	cr_expect_eq(comms[0].entry.comm_id, 0x2222u);
	cr_expect_eq(comms[0].entry.comm_rank, 1);
	cr_expect_str_eq(cw_record_header(r)->job_label, "test:job");
	cr_expect_geq(cw_record_fd(r), 0);
}

Test(record_reader, refresh_sees_what_changed)
{
	_cleanup_(record_closep) struct cw_record *r = record_must_open();
	size_t n;

	cw_record_comms(r, &n);
	cr_expect_eq(n, 0u);
	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 10);
	rec->header->rank_label = 17;
	cr_assert_eq(cw_record_refresh(r), 0);
	cr_expect_eq(record_first_comm(r)->entry.coll_entered, 1u);
	cr_expect_eq(cw_record_header(r)->rank_label, 17);
	cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 10);
	cr_expect_eq(record_first_comm(r)->entry.coll_entered, 1u, "as of the last refresh");
	cr_assert_eq(cw_record_refresh(r), 0);
	cr_expect_eq(record_first_comm(r)->entry.coll_entered, 2u);
}

Test(record_reader, text_comes_out_terminated_and_printable)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_rec_comm *c;

	cw_test_record_comm(rec, 1, 8, 3);
	c = &rec->comms[0];
	memset(c->name, 'A', sizeof(c->name));
	memcpy(c->last_error, "a\nb\x1b[0m\xff", 9);
	memset(rec->header->job_label, 0x80, sizeof(rec->header->job_label));
	r = record_must_open();
	cr_expect_eq(strlen(record_first_comm(r)->entry.name), sizeof(c->name) - 1);
	cr_expect_str_eq(record_first_comm(r)->entry.last_error, "a?b?[0m?");
	cr_expect_eq(strlen(cw_record_header(r)->job_label), sizeof(rec->header->job_label) - 1);
	cr_expect_eq(cw_record_header(r)->job_label[0], '?');
}

Test(record_reader, an_entry_that_is_being_changed_keeps_its_last_stable_contents)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	size_t n;

	cw_test_record_comm(rec, 0x1111, 8, 3);
	cw_test_record_comm(rec, 0x2222, 8, 3);
	rec->comms[1].seqlock = 3;
	r = record_must_open();
	cw_record_comms(r, &n);
	cr_expect_eq(n, 1u, "never seen stable");
	rec->comms[0].seqlock++;
	rec->comms[0].comm_id = 0x3333;
	rec->comms[1].seqlock++;
	cr_assert_eq(cw_record_refresh(r), 0);
	cw_record_comms(r, &n);
	cr_expect_eq(n, 2u);
	cr_expect_eq(record_first_comm(r)[0].entry.comm_id, 0x1111u);
	cr_expect_eq(record_first_comm(r)[1].entry.comm_id, 0x2222u);
	rec->comms[0].seqlock++;
	cr_assert_eq(cw_record_refresh(r), 0);
	cr_expect_eq(record_first_comm(r)[0].entry.comm_id, 0x3333u);
}

Test(record_reader, comm_ranks_out_of_range_are_unknown)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 8);
	cw_test_record_comm(rec, 2, 8, -5);
	cw_test_record_comm(rec, 3, 8, 7);
	rec->comms[2].state = CW_COMM__MAX;
	r = record_must_open();
	cw_record_comms(r, &n);
	cr_expect_eq(n, 2u, "a comm in an unknown state is unused");
	cr_expect_eq(record_first_comm(r)[0].entry.comm_rank, -1);
	cr_expect_eq(record_first_comm(r)[1].entry.comm_rank, -1);
}

Test(record_reader, windows_reach_from_the_comms_ring_into_the_bulk_ring)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_record_op ops[200];
	uint64_t lost;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_comm(rec, 2, 8, 3);
	for (unsigned i = 1; i <= 100; i++) {
		cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, i);
		cw_test_record_collective(rec, 1, CW_OP_BROADCAST, i);
	}
	r = record_must_open();
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 32, &n, &lost), 0);
	cr_expect_eq(n, 32u);
	cr_expect_eq(lost, 68u);
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 200, &n, &lost), 0);
	cr_expect_eq(n, 100u);
	cr_expect_eq(lost, 0u);
	for (size_t i = 0; i < n; i++) {
		cr_expect_eq(ops[i].coll_seq, i + 1);
		cr_expect_eq(ops[i].kind, CW_OP_ALL_REDUCE);
		cr_expect_eq(ops[i].count, i + 1);
	}
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 7, &n, &lost), 0);
	cr_expect_eq(n, 7u);
	cr_expect_eq(ops[0].coll_seq, 94u);
	cr_expect_eq(lost, 93u);
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 0, &n, &lost), 0);
	cr_expect_eq(n, 0u);
	cr_expect_eq(lost, 100u);
}

Test(record_reader, a_slow_comms_window_survives_a_busy_one)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_record_op ops[64];
	uint64_t lost;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_comm(rec, 2, 8, 3);
	for (unsigned i = 0; i < 40; i++)
		cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1);
	for (unsigned i = 0; i < 2 * CW_REC_RING_OPS; i++)
		cw_test_record_p2p(rec, 1, CW_OP_SEND, 1, 1);
	r = record_must_open();
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 64, &n, &lost), 0);
	cr_expect_eq(n, 32u);
	cr_expect_eq(lost, 8u);
	cr_expect_eq(ops[0].coll_seq, 9u);
}

Test(record_reader, ops_carry_kind_specific_fields)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_record_op ops[4];
	uint64_t lost, op;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	rec->now_ns = 5000;
	op = cw_test_record_collective(rec, 0, CW_OP_BROADCAST, 12);
	rec->now_ns = 6000;
	cw_test_record_return(rec, 0, op, 0);
	cw_test_record_p2p(rec, 0, CW_OP_RECV, 5, 10);
	cw_test_record_progress(rec, 0, 1, 1);
	r = record_must_open();
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 4, &n, &lost), 0);
	cr_assert_eq(n, 2u);
	cr_expect_eq(ops[0].root, 0);
	cr_expect_eq(ops[0].peer, CW_PEER_NONE);
	cr_expect_eq(ops[0].coll_seq, 1u);
	cr_expect_eq(ops[0].p2p_seq, 0u);
	cr_expect_eq(ops[0].enter_mono_ns, 5000);
	cr_expect_eq(ops[0].return_mono_ns, 6000);
	cr_expect_eq(ops[0].progress, CW_PROGRESS_COMPLETED);
	cr_expect_eq(ops[1].root, CW_PEER_NONE);
	cr_expect_eq(ops[1].peer, 5);
	cr_expect_eq(ops[1].coll_seq, 0u);
	cr_expect_eq(ops[1].p2p_seq, 1u);
	cr_expect_eq(ops[1].return_mono_ns, 0);
	cr_expect_eq(ops[1].progress, CW_PROGRESS_UNKNOWN, "not back: maybe not enqueued");
}

static void count_cycles(void)
{
	rec->header->clock = CW_REC_CLOCK_TSC;
	rec->header->tsc_base = 1000000;
	rec->header->tsc_base_ns = 500;
	rec->header->tsc_mult = 1u << 31; /* 2 GHz: half a nanosecond per tick */
	rec->header->tsc_shift = 32;
}

Test(record_reader, times_of_the_cycle_counter_are_converted)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_record_op ops[4];
	uint64_t lost;
	size_t n;

	count_cycles();
	cw_test_record_comm(rec, 1, 8, 3);
	rec->now_ns = 3000000;
	cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1);
	r = record_must_open();
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 4, &n, &lost), 0);
	cr_expect_eq(ops[0].enter_mono_ns, 1000500);
}

Test(record_reader, a_host_call_has_a_time_as_ops_have)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_record_op op;

	count_cycles();
	rec->header->host_call_kind = CW_OP_COMM_INIT;
	rec->header->host_call_enter_ns = 3000000;
	r = record_must_open();
	op = cw_record_host_call(r);
	cr_expect_eq(op.kind, CW_OP_COMM_INIT);
	cr_expect_eq(op.enter_mono_ns, 1000500);
	rec->header->host_call_kind = (uint64_t)CW_OP_COMM_INIT << 32;
	cr_assert_eq(cw_record_refresh(r), 0);
	cr_expect_eq(cw_record_host_call(r).kind, CW_OP_NONE, "no kind that there is");
}

Test(record_reader, slots_that_lie_wrong_are_omitted)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_record_op ops[16];
	uint64_t lost;
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	for (int i = 0; i < 8; i++)
		cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1);
	memset(rec->ring, 0, sizeof(rec->ring[0]) * CW_REC_RING_OPS);
	rec->comms[0].ops[0].publish = 0;
	rec->comms[0].ops[1].publish = 7;                /* of another slot */
	rec->comms[0].ops[2].comm = 9;                   /* of another comm */
	rec->comms[0].ops[3].comm_generation = 9;        /* of the entry's earlier life */
	rec->comms[0].ops[5].op_index = 5;               /* twice the same */
	rec->comms[0].ops[7].publish += CW_REC_COMM_OPS; /* a lap ahead is fine */
	r = record_must_open();
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 16, &n, &lost), 0);
	cr_assert_eq(n, 3u);
	cr_expect_eq(ops[0].op_index, 5u);
	cr_expect_eq(ops[1].op_index, 7u);
	cr_expect_eq(ops[2].op_index, 8u);
	cr_expect_eq(lost, 4u);
}

Test(record_reader, peers_are_counted_per_direction)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_p2p_peer peers[4];
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_p2p(rec, 0, CW_OP_SEND, 5, 10);
	cw_test_record_p2p(rec, 0, CW_OP_SEND, 5, 10);
	cw_test_record_p2p(rec, 0, CW_OP_RECV, 2, 10);
	r = record_must_open();
	cr_assert_eq(cw_record_p2p(r, record_first_comm(r), peers, 4, &n), 0);
	cr_assert_eq(n, 2u);
	cr_expect_eq(peers[0].peer, 5u);
	cr_expect_eq(peers[0].sends, 2u);
	cr_expect_eq(peers[1].peer, 2u);
	cr_expect_eq(peers[1].recvs, 1u);
	cr_assert_eq(cw_record_p2p(r, record_first_comm(r), peers, 1, &n), 0);
	cr_expect_eq(n, 1u);
	rec->p2p[0].comm_generation++;
	cr_assert_eq(cw_record_p2p(r, record_first_comm(r), peers, 4, &n), 0);
	cr_expect_eq(n, 0u, "the block belongs to another comm by now");
}

Test(record_reader, hash_of_messages_is_not_known_while_one_is_being_counted)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	struct cw_p2p_peer peers[4];
	size_t n;

	cw_test_record_comm(rec, 1, 8, 3);
	cw_test_record_p2p(rec, 0, CW_OP_SEND, 5, 10);
	r = record_must_open();
	cr_assert_eq(cw_record_p2p(r, record_first_comm(r), peers, 4, &n), 0);
	cr_expect_neq(peers[0].send_hash, 0u);
	rec->p2p[0].peers[0].count[0]++; /* its hash and the total come next */
	cr_assert_eq(cw_record_p2p(r, record_first_comm(r), peers, 4, &n), 0);
	cr_assert_eq(n, 1u);
	cr_expect_eq(peers[0].sends, 2u);
	cr_expect_eq(peers[0].send_hash, 0u);
}
