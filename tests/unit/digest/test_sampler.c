/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/sampler.h"

#include <criterion/criterion.h>

#include "common/clock.h"
#include "model/signature.h"
#include "tests/support/record/record_writer.h"

#define STEP_NS (250 * CW_NS_PER_MS)

struct setup {
	struct cw_test_record *writer;
	struct cw_record *record;
	struct cw_sampler sampler;
	int comm;
	int64_t now_ns;
};

static void start(struct setup *s)
{
	struct cw_err err;

	*s = (struct setup){ .writer = cw_test_record_new(), .now_ns = 100 * CW_NS_PER_S };
	s->comm = cw_test_record_comm(s->writer, 0x11, 8, 3);
	cr_assert_eq(cw_record_open(cw_test_record_dup(s->writer), true, &s->record, &err), 0);
	cw_sampler_init(&s->sampler);
}

static void stop(struct setup *s)
{
	cw_sampler_fini(&s->sampler);
	cw_record_close(s->record);
	cw_test_record_free(s->writer);
}

/* A quarter of a second passes; the track of the only comm. */
static const struct cw_track *sample(struct setup *s)
{
	const struct cw_record_comm *comms;
	size_t n;

	s->now_ns += STEP_NS;
	cr_assert_eq(cw_sampler_sample(&s->sampler, s->record, s->now_ns), 0);
	comms = cw_record_comms(s->record, &n);
	cr_assert_eq(n, 1);
	cr_assert_eq(s->sampler.n, 1);
	return cw_sampler_find(&s->sampler, &comms[0]);
}

static uint64_t enter(struct setup *s)
{
	return cw_test_record_collective(s->writer, s->comm, CW_OP_ALL_REDUCE, 1000);
}

static void complete(struct setup *s, uint64_t op)
{
	cw_test_record_return(s->writer, s->comm, op, 0);
	cw_test_record_progress(s->writer, s->comm, op, op);
}

Test(sampler, remembers_when_anything_last_moved)
{
	const struct cw_track *t;
	struct setup s;
	int64_t moved_ns;
	uint64_t op;

	start(&s);
	cr_assert_eq(sample(&s)->progress_ns, s.now_ns, "first sight");
	moved_ns = s.now_ns;
	cr_assert_eq(sample(&s)->progress_ns, moved_ns);
	op = enter(&s);
	t = sample(&s);
	cr_assert_eq(t->progress_ns, s.now_ns);
	cr_assert(t->state.has_pending);
	cw_test_record_return(s.writer, s.comm, op, 0);
	cr_assert_eq(sample(&s)->progress_ns, s.now_ns);
	/* Only the device moves now: no counter of the host tells. */
	cw_test_record_progress(s.writer, s.comm, op, op - 1);
	t = sample(&s);
	cr_assert_eq(t->progress_ns, s.now_ns);
	cr_assert(t->state.has_pending);
	cw_test_record_progress(s.writer, s.comm, op, op);
	t = sample(&s);
	cr_assert_eq(t->progress_ns, s.now_ns);
	cr_assert_not(t->state.has_pending);
	cr_assert_eq(t->last.coll_completed, 1);
	moved_ns = s.now_ns;
	cr_assert_eq(sample(&s)->progress_ns, moved_ns);
	stop(&s);
}

Test(sampler, rhythm_is_the_median_of_intervals)
{
	struct setup s;

	start(&s);
	cr_assert_eq(cw_sampler_interval_ns(sample(&s)), 0);
	/* Two ops per second, and once a pause of five seconds. */
	for (int i = 0; i < 9; i++) {
		complete(&s, enter(&s));
		(void)sample(&s);
		(void)sample(&s);
		for (int j = 0; i == 4 && j < 18; j++)
			(void)sample(&s);
	}
	cr_assert_eq(cw_sampler_interval_ns(sample(&s)), CW_NS_PER_S / 2);
	stop(&s);
}

Test(sampler, rhythm_of_ops_faster_than_the_sampling)
{
	struct setup s;

	start(&s);
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 10; j++)
			complete(&s, enter(&s));
		(void)sample(&s);
	}
	cr_assert_eq(cw_sampler_interval_ns(sample(&s)), STEP_NS / 10);
	stop(&s);
}

Test(sampler, hash_is_given_out_only_when_it_stands_still)
{
	struct setup s;

	start(&s);
	cr_assert_not(sample(&s)->is_hash_stable, "seen once");
	cr_assert(sample(&s)->is_hash_stable);
	complete(&s, enter(&s));
	s.writer->comms[s.comm].hash = 4711;
	cr_assert_not(sample(&s)->is_hash_stable);
	cr_assert(sample(&s)->is_hash_stable);
	stop(&s);
}

/* Each call has a length of its own. */
static uint64_t hash_after(uint64_t seq)
{
	uint64_t h = CW_HASH_INIT;

	for (uint64_t i = 1; i <= seq; i++)
		h = cw_hash_commit(h, cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM,
						   CW_PEER_NONE, 1000 + i, 4 * (1000 + i)));
	return h;
}

static void call(struct setup *s, uint64_t seq)
{
	complete(s, cw_test_record_collective(s->writer, s->comm, CW_OP_ALL_REDUCE, 1000 + seq));
}

static void must_end_with(const struct cw_track *t, uint64_t first, uint64_t last)
{
	uint64_t n = last - first + 1;

	cr_assert_geq(t->n_commits, n, "%u", t->n_commits);
	for (uint64_t i = 0; i < n; i++) {
		const struct cw_checkpoint *c = &t->commits[t->n_commits - n + i];

		cr_expect_eq(c->coll_seq, first + i, "%lu", (unsigned long)c->coll_seq);
		cr_expect_eq(c->hash, hash_after(first + i), "after call %lu",
			     (unsigned long)c->coll_seq);
	}
}

Test(sampler, knows_the_hash_after_each_call_that_it_is_quick_enough_for)
{
	const struct cw_track *t;
	struct setup s;

	start(&s);
	(void)sample(&s);
	for (uint64_t seq = 1; seq <= 3; seq++)
		call(&s, seq);
	t = sample(&s);
	must_end_with(t, 1, 3);
	cr_expect_eq(t->commits_ns, s.now_ns);
	cr_expect_eq(t->checkpoint_ns, 0, "call 8 has not come");
	for (uint64_t seq = 4; seq <= 11; seq++)
		call(&s, seq);
	t = sample(&s);
	must_end_with(t, 4, 11);
	cr_expect_eq(t->checkpoint_ns, s.now_ns);
	/* Too many at a time: where it stands still, the newest one is known again. */
	for (uint64_t seq = 12; seq <= 30; seq++)
		call(&s, seq);
	must_end_with(sample(&s), 4, 11);
	must_end_with(sample(&s), 30, 30);
	call(&s, 31);
	must_end_with(sample(&s), 30, 31);
	stop(&s);
}

Test(sampler, believes_no_hash_that_the_calls_do_not_lead_to)
{
	const struct cw_track *t;
	struct setup s;

	start(&s);
	(void)sample(&s);
	call(&s, 1);
	(void)sample(&s);
	call(&s, 2);
	s.writer->comms[s.comm].hash ^= 1; /* read while it moved */
	t = sample(&s);
	cr_assert_eq(t->n_commits, 1);
	s.writer->comms[s.comm].hash ^= 1;
	must_end_with(sample(&s), 1, 2);
	/* A call that the ring does not tell of, as those of a graph. */
	s.writer->comms[s.comm].coll_returned = s.writer->comms[s.comm].coll_entered = 4;
	s.writer->comms[s.comm].hash = 4711;
	cr_assert_eq(sample(&s)->n_commits, 2);
	t = sample(&s);
	cr_assert_eq(t->n_commits, 3, "it stands still");
	cr_expect_eq(t->commits[2].coll_seq, 4);
	cr_expect_eq(t->commits[2].hash, 4711);
	s.writer->comms[s.comm].flags |= CW_REC_COMM_UNCOUNTED;
	cr_assert_eq(sample(&s)->n_commits, 0);
	stop(&s);
}

Test(sampler, calls_of_a_group_are_one_step_of_the_hash)
{
	struct cw_rec_op op = { .kind = CW_OP_ALL_REDUCE,
				.dtype = CW_DTYPE_FP32,
				.redop = CW_REDOP_SUM,
				.root_or_peer = CW_PEER_NONE,
				.group_id = 9,
				.flags = CW_OPF_GROUPED,
				.progress_slot = CW_REC_NO_SLOT };
	const struct cw_track *t;
	uint64_t sum = 0;
	struct setup s;

	start(&s);
	(void)sample(&s);
	call(&s, 1);
	for (uint64_t i = 0; i < 2; i++) {
		op.count = 5 + i;
		op.bytes = 4 * op.count;
		sum += cw_signature(op.kind, op.dtype, op.redop, op.root_or_peer, op.count,
				    op.bytes);
		cw_test_record_return(s.writer, s.comm, cw_test_record_enter(s.writer, s.comm, &op),
				      0);
	}
	/* The writer counts call by call, an agent by groups. */
	s.writer->comms[s.comm].hash = cw_hash_commit(hash_after(1), sum);
	t = sample(&s);
	cr_assert_eq(t->n_commits, 2);
	cr_expect_eq(t->commits[1].coll_seq, 3);
	cr_expect_eq(t->commits[1].hash, cw_hash_commit(hash_after(1), sum));
	stop(&s);
}

Test(sampler, reused_entry_is_another_communicator)
{
	const struct cw_track *t;
	struct setup s;

	start(&s);
	complete(&s, enter(&s));
	for (int i = 0; i < 5; i++)
		complete(&s, enter(&s)), (void)sample(&s);
	cr_assert_neq(cw_sampler_interval_ns(sample(&s)), 0);
	cw_test_record_reuse_comm(s.writer, s.comm, 0x22);
	t = sample(&s);
	cr_assert_eq(cw_sampler_interval_ns(t), 0);
	cr_assert_eq(t->progress_ns, s.now_ns);
	stop(&s);
}

Test(sampler, record_that_turns_bad_keeps_the_last_good_sample)
{
	struct setup s;
	int64_t good_ns;

	start(&s);
	(void)enter(&s);
	(void)sample(&s);
	good_ns = s.now_ns;
	s.writer->header->magic = 1;
	cr_assert_lt(cw_sampler_sample(&s.sampler, s.record, s.now_ns + STEP_NS), 0);
	cr_assert_not(s.sampler.is_ok);
	cr_assert_eq(s.sampler.sampled_ns, good_ns);
	cr_assert(s.sampler.tracks[0].state.has_pending);
	stop(&s);
}

Test(sampler, record_that_nobody_watched_tells_when_it_moved)
{
	struct cw_sampler past;
	struct setup s;

	start(&s);
	cw_sampler_init(&past);
	s.writer->header->beat_ns = 700 * CW_NS_PER_S;
	s.writer->now_ns = 500 * CW_NS_PER_S;
	complete(&s, enter(&s));
	cr_assert_eq(cw_sampler_read_past(&past, s.record), 0);
	cr_assert_eq(past.n, 1);
	cr_assert_geq(past.tracks[0].progress_ns, 500 * CW_NS_PER_S);
	cr_assert_lt(past.tracks[0].progress_ns, 501 * CW_NS_PER_S);
	cr_assert_eq(past.sampled_ns, 700 * CW_NS_PER_S, "the agent's last beat");
	cr_assert_not(past.tracks[0].is_hash_stable, "a pair that was seen once");
	s.writer->header->beat_ns = 0;
	cr_assert_eq(cw_sampler_read_past(&past, s.record), 0);
	cr_assert_eq(past.sampled_ns, past.tracks[0].progress_ns, "or its newest call");
	cw_sampler_fini(&past);
	stop(&s);
}
