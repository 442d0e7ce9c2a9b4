/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/sampler.h"

#include <criterion/criterion.h>

#include "common/clock.h"
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
