/* SPDX-License-Identifier: Apache-2.0 */
/* The network connections of a record: as written, half written, and as no agent writes them. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

#define RANK 3
#define SIZE 8

static struct cw_test_record *rec;
static struct cw_record *reader;
static struct cw_record_connection found[2 * CW_REC_CONNECTIONS];
static struct cw_record_connections_omitted omitted;

static void set_up(void)
{
	rec = cw_test_record_new();
	cw_test_record_comm(rec, 0x1234, SIZE, RANK);
	cw_test_record_comm(rec, 0x5678, SIZE, RANK);
}

static void tear_down(void)
{
	reader = cw_record_close(reader);
	rec = cw_test_record_free(rec);
}

TestSuite(record_connections, .init = set_up, .fini = tear_down);

static struct cw_rec_connection sender(void)
{
	return (struct cw_rec_connection){
		.sequence = 8,
		.rank = RANK,
		.peer = 5,
		.op = 1,
		.steps = 16,
		.counts = { 9, 8, 7, 6 },
		.comm_plus_1 = 2,
		.channel = 1,
		.flags = CW_REC_CONNECTION_USED | CW_REC_CONNECTION_SEND |
			 CW_REC_CONNECTION_DETAILED,
		.open_ops = 2,
		.newest_ns = 123456,
		.bytes = 1 << 20,
	};
}

static size_t read_all(void)
{
	size_t n = 0;

	if (!reader)
		cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);
	cr_assert_eq(cw_record_refresh(reader), 0);
	cr_assert_eq(cw_record_connections(reader, found, 2 * CW_REC_CONNECTIONS, &n, &omitted), 0);
	return n;
}

Test(record_connections, has_none_at_first)
{
	cr_assert_eq(read_all(), 0);
	cr_assert_eq(omitted.torn + omitted.impossible + omitted.lost, 0);
}

Test(record_connections, returns_a_sender)
{
	rec->connections[700] = sender();
	rec->header->drops[CW_REC_DROP_CONNECTIONS] = 3;
	cr_assert_eq(read_all(), 1);
	cr_assert_eq(found->comm, 1);
	cr_assert_eq(found->pid, 0);
	cr_assert_eq(found->rank, RANK);
	cr_assert_eq(found->peer, 5);
	cr_assert_eq(found->channel, 1);
	cr_assert(found->is_send && found->is_detailed && !found->is_p2p);
	cr_assert_eq(found->steps, 16);
	cr_assert_eq(found->posted, 9);
	cr_assert_eq(found->ready, 8);
	cr_assert_eq(found->handed, 7);
	cr_assert_eq(found->done, 6);
	cr_assert_eq(found->open_ops, 2);
	cr_assert_eq(found->newest_mono_ns, 123456);
	cr_assert_eq(found->bytes, 1 << 20);
	cr_assert_eq(omitted.lost, 3);
}

Test(record_connections, completes_the_number_of_an_op)
{
	rec->comms[1].op_index = UINT64_C(0x500000003);
	rec->connections[0] = sender();
	rec->connections[0].op = 2;
	rec->connections[1] = sender();
	rec->connections[1].op = 0xfffffffe; /* shortly before */
	rec->connections[2] = sender();
	rec->connections[2].op = 0;
	cr_assert_eq(read_all(), 3);
	cr_assert_eq(found[0].op_index, UINT64_C(0x500000002));
	cr_assert_eq(found[1].op_index, UINT64_C(0x4fffffffe));
	cr_assert_eq(found[2].op_index, 0);
}

Test(record_connections, knows_no_ready_steps_of_an_old_sender)
{
	rec->connections[0] = sender();
	rec->connections[0].flags &= ~CW_REC_CONNECTION_DETAILED;
	rec->connections[0].counts[CW_REC_STEP_READY] = 0;
	cr_assert_eq(read_all(), 1);
	cr_assert_not(found->is_detailed);
	cr_assert_eq(found->handed, 7);
}

Test(record_connections, knows_no_communicator_of_another_process)
{
	rec->connections[0] = sender();
	rec->connections[0].pid = 77;
	rec->connections[0].rank = RANK + 1;
	rec->connections[0].peer = 4000; /* of a communicator that this record lacks */
	cr_assert_eq(read_all(), 1);
	cr_assert_eq(found->pid, 77);
	cr_assert_eq(found->rank, RANK + 1);
}

Test(record_connections, returns_no_more_than_fit)
{
	size_t n = 0;

	for (unsigned i = 0; i < 10; i++)
		rec->connections[i * 100] = sender();
	cr_assert_eq(read_all(), 10);
	cr_assert_eq(cw_record_connections(reader, found, 4, &n, &omitted), 0);
	cr_assert_eq(n, 4);
}

Test(record_connections, counts_and_skips_impossible_ones)
{
	static const struct {
		const char *what;
		size_t at, bytes;
		uint64_t value;
	} odd[] = {
#define FIELD(name)                                                                                \
	offsetof(struct cw_rec_connection, name), sizeof(((struct cw_rec_connection *)0)->name)
		{ "peer", FIELD(peer), SIZE },
		{ "negative peer", FIELD(peer), UINT32_MAX },
		{ "rank", FIELD(rank), RANK + 1 },
		{ "negative rank", FIELD(rank), UINT32_MAX },
		{ "channel", FIELD(channel), 64 },
		{ "communicator", FIELD(comm_plus_1), 3 },
		{ "last communicator", FIELD(comm_plus_1), 255 },
		{ "no open op", FIELD(open_ops), 0 },
		{ "time", FIELD(newest_ns), UINT64_MAX },
		{ "steps", FIELD(steps), 8 },
		{ "posted", FIELD(counts[CW_REC_STEP_POSTED]), 7 },
		{ "ready", FIELD(counts[CW_REC_STEP_READY]), 6 },
		{ "handed", FIELD(counts[CW_REC_STEP_HANDED]), 5 },
		{ "done", FIELD(counts[CW_REC_STEP_DONE]), 8 },
#undef FIELD
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		rec->connections[0] = rec->connections[1] = sender();
		memcpy((char *)&rec->connections[0] + odd[i].at, &odd[i].value, odd[i].bytes);
		cr_assert_eq(read_all(), 1, "%s", odd[i].what);
		cr_assert_eq(omitted.impossible, 1, "%s", odd[i].what);
	}
}

Test(record_connections, counts_and_skips_one_whose_writer_stopped_in_the_middle)
{
	rec->connections[40] = rec->connections[41] = sender();
	rec->connections[40].sequence++;
	cr_assert_eq(read_all(), 1);
	cr_assert_eq(omitted.torn, 1);
}

static atomic_bool stop;

/* As NCCL's proxy: every field follows from the number of the step. */
static void *write_steps(void *user)
{
	struct cw_rec_connection *slot = user;

	for (uint32_t i = 1; !atomic_load(&stop); i = i % 1000000 + 1) {
		__atomic_store_n(&slot->sequence, slot->sequence | 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		for (unsigned j = 0; j < CW_REC_STEP__MAX; j++)
			__atomic_store_n(&slot->counts[j], i, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->steps, i, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->bytes, i * UINT64_C(3), __ATOMIC_RELAXED);
		__atomic_store_n(&slot->sequence, slot->sequence + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

Test(record_connections, are_never_seen_half_written, .timeout = 300)
{
	pthread_t writer;
	size_t seen = 0;

	rec->connections[33] = sender();
	rec->connections[33].counts[0] = rec->connections[33].counts[1] =
		rec->connections[33].counts[2] = rec->connections[33].counts[3] = 16;
	rec->connections[33].bytes = 48;
	cr_assert_eq(pthread_create(&writer, NULL, write_steps, &rec->connections[33]), 0);
	for (int i = 0; i < 1000 || seen < 100; i++) {
		size_t n = read_all();

		cr_assert_eq(omitted.impossible, 0);
		cr_assert_eq(n + omitted.torn, 1);
		seen += n;
		for (size_t j = 0; j < n; j++) {
			cr_assert_eq(found[j].bytes, found[j].steps * UINT64_C(3));
			cr_assert_eq(found[j].posted, found[j].steps);
			cr_assert_eq(found[j].done, found[j].steps);
		}
	}
	atomic_store(&stop, true);
	cr_assert_eq(pthread_join(writer, NULL), 0);
}
