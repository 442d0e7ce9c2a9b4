/* SPDX-License-Identifier: Apache-2.0 */
/* Records that change while they are read, by a correct writer and by a malicious one. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "record/record_reader.h"
#include "tests/support/record/record_writer.h"

static void record_closep(struct cw_record **r)
{
	cw_record_close(*r);
}

static atomic_bool stop;

/* As the agent: publish away, fields, publish back. Every field follows from op_index. */
static void write_slot(struct cw_rec_op *slot, uint64_t ticket)
{
	uint64_t v = ticket + 1;

	__atomic_store_n(&slot->publish, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&slot->op_index, v, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->seq, v * 3, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->enter_ns, v * 5, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->count, v * 7, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->bytes, v * 11, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->stream, v * 13, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->publish, ticket + 1, __ATOMIC_RELEASE);
}

static void *write_for_ever(void *user)
{
	struct cw_test_record *rec = user;
	struct cw_rec_comm *c = rec->comms;

	for (uint64_t ticket = 0; !atomic_load(&stop); ticket++) {
		/* the identity: odd, two fields that belong together, even */
		uint64_t lock = c->seqlock;

		__atomic_store_n(&c->seqlock, lock + 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		__atomic_store_n(&c->comm_id, ticket, __ATOMIC_RELAXED);
		__atomic_store_n(&c->nccl_hash, ~ticket, __ATOMIC_RELAXED);
		__atomic_store_n(&c->seqlock, lock + 2, __ATOMIC_RELEASE);
		__atomic_store_n(&c->op_index, ticket + 1, __ATOMIC_RELAXED);
		write_slot(&c->ops[ticket % CW_REC_COMM_OPS], ticket);
		write_slot(&rec->ring[ticket % CW_REC_RING_OPS], ticket);
		__atomic_store_n(&rec->header->ring_ticket, ticket + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void prepare(struct cw_test_record *rec)
{
	struct cw_rec_op op = { .kind = CW_OP_ALL_REDUCE, .comm_generation = 1 };

	cw_test_record_comm(rec, 0, 8, 3);
	rec->comms[0].nccl_hash = UINT64_MAX;
	for (unsigned i = 0; i < CW_REC_COMM_OPS; i++)
		rec->comms[0].ops[i] = op;
	for (unsigned i = 0; i < CW_REC_RING_OPS; i++)
		rec->ring[i] = op;
}

static size_t check_window(const struct cw_record_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = ops[i].op_index;

		cr_assert_eq(ops[i].coll_seq, v * 3);
		cr_assert_eq(ops[i].enter_mono_ns, (int64_t)(v * 5));
		cr_assert_eq(ops[i].count, v * 7);
		cr_assert_eq(ops[i].bytes, v * 11);
		cr_assert_eq(ops[i].stream, v * 13);
		cr_assert(i == 0 || ops[i - 1].op_index < v);
	}
	return n;
}

Test(record_hostile, no_op_is_ever_seen_half_written, .timeout = 300)
{
	struct cw_test_record *rec = cw_test_record_new();
	_cleanup_(record_closep) struct cw_record *r = NULL;
	static struct cw_record_op ops[256];
	size_t n, seen = 0, n_comms;
	uint64_t lost;
	pthread_t writer;

	prepare(rec);
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &r, NULL), 0);
	cr_assert_eq(pthread_create(&writer, NULL, write_for_ever, rec), 0);
	for (int i = 0; i < 1000 || seen < 1000; i++) {
		const struct cw_record_comm *comm;
		struct cw_record_state state;

		cr_assert_eq(cw_record_refresh(r), 0);
		comm = cw_record_comms(r, &n_comms);
		cr_assert_eq(n_comms, 1u);
		cr_assert_eq(comm->entry.comm_id, ~comm->entry.nccl_hash);
		/* now and then the bulk ring as well: it takes longer */
		cr_assert_eq(cw_record_window(r, comm, ops, i % 16 ? 32 : 256, &n, &lost), 0);
		seen += check_window(ops, n);
		cr_assert_eq(cw_record_state(r, comm, &state), 0);
		if (state.has_last)
			(void)check_window(&state.last, 1);
		if (state.has_pending)
			(void)check_window(&state.pending, 1);
	}
	atomic_store(&stop, true);
	pthread_join(writer, NULL);
	cw_test_record_free(rec);
}

static void count_op(const struct cw_rec_op *op, void *user)
{
	++*(uint64_t *)user;
}

static void check_time(const struct cw_rec_time *t, void *user)
{
	cr_assert(t->begin_ns <= t->end_ns && t->end_ns - t->begin_ns <= 86400000000000ull);
}

static void read_everything(struct cw_record *r)
{
	struct cw_rec_summary bad[CW_REC_SUMMARY_FIRSTS];
	uint64_t cursor = 0, counted = 0;
	static struct cw_record_op ops[CW_REC_RING_OPS];
	struct cw_p2p_peer peers[CW_REC_P2P_PEERS];
	const struct cw_record_comm *comms;
	struct cw_record_state state;
	size_t n_comms, n;
	uint64_t lost;

	comms = cw_record_comms(r, &n_comms);
	cr_assert_leq(n_comms, CW_REC_COMMS);
	for (size_t i = 0; i < n_comms; i++) {
		if (cw_record_window(r, &comms[i], ops, i % 2 ? 40 : CW_REC_RING_OPS, &n, &lost) ==
		    0)
			cr_assert_leq(n, CW_REC_RING_OPS);
		if (cw_record_state(r, &comms[i], &state) == 0 && state.completed_known)
			cr_assert_leq(state.coll_completed, comms[i].entry.coll_entered);
		(void)cw_record_p2p(r, &comms[i], peers, CW_REC_P2P_PEERS, &n);
		cr_assert_null(memchr(comms[i].entry.name, '\n', strlen(comms[i].entry.name)));
	}
	(void)cw_record_each_returned(r, &cursor, &lost, count_op, &counted);
	cr_assert_leq(counted, CW_REC_RING_OPS);
	cursor = 0;
	cw_record_each_time(r, &cursor, check_time, NULL);
	n = cw_record_nonfinite_inputs(r, bad, CW_REC_SUMMARY_FIRSTS);
	for (size_t i = 0; i < n; i++)
		cr_assert(bad[i].abs_max == bad[i].abs_max && bad[i].l2 == bad[i].l2);
}

static void fill(struct cw_test_record *rec, unsigned *seed)
{
	for (unsigned i = 0; i < 6; i++)
		cw_test_record_comm(rec, i + 1, 8, (int32_t)i);
	for (unsigned i = 0; i < 300; i++) {
		int comm = rand_r(seed) % 6;
		uint64_t op = i % 3 ? cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, i)
				    : cw_test_record_p2p(rec, comm, CW_OP_SEND, 1, i);

		cw_test_record_progress(rec, comm, op, op - (unsigned)rand_r(seed) % 2);
		if (rand_r(seed) % 8)
			cw_test_record_return(rec, comm, op, 0);
	}
}

/* Places where a changed byte gets past the first checks more often than a random one does. */
static size_t pick_offset(const struct cw_test_record *rec, unsigned *seed)
{
	size_t random = (size_t)rand_r(seed);

	switch (rand_r(seed) % 5) {
	case 0:
		return random % 1200; /* header and section table */
	case 1:
		return 4096 + random % (6 * sizeof(struct cw_rec_comm));
	case 2:
		return (size_t)((char *)rec->ring - (char *)rec->header) + random % (300 * 128);
	case 3:
		return (size_t)((char *)rec->progress_info - (char *)rec->header) + random % 512;
	default:
		return random % rec->bytes;
	}
}

Test(record_hostile, random_corruption_never_harms_the_reader, .timeout = 300)
{
	struct cw_test_record *rec = cw_test_record_new();
	_cleanup_(freep) char *good = malloc(rec->bytes);
	unsigned seed = 20261121, opened = 0;

	fill(rec, &seed);
	memcpy(good, rec->header, rec->bytes);
	for (int round = 0; round < 400; round++) {
		_cleanup_(record_closep) struct cw_record *r = NULL;
		unsigned n = 1u << rand_r(&seed) % 8;
		bool late = rand_r(&seed) % 2;

		memcpy(rec->header, good, rec->bytes);
		if (late)
			cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &r, NULL), 0);
		for (unsigned i = 0; i < n; i++)
			((unsigned char *)rec->header)[pick_offset(rec, &seed)] =
				(unsigned char)(rand_r(&seed) % 4 ? rand_r(&seed) : 0xff);
		if (!late && cw_record_open(cw_test_record_dup(rec), true, &r, NULL) < 0)
			continue;
		opened++;
		if (late)
			read_everything(r);
		(void)cw_record_refresh(r);
		read_everything(r);
	}
	cr_expect_gt(opened, 150u, "the corruption must get past the door: %u", opened);
	cw_test_record_free(rec);
}
