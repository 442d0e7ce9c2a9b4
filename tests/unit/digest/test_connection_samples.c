/* SPDX-License-Identifier: Apache-2.0 */
/* Successive readings of a connection, and their way into a digest. */
#include "digest/connection_samples.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/clock.h"
#include "digest/digest.h"
#include "model/facts.h"
#include "tests/support/record/record_writer.h"

#define START_NS (100 * CW_NS_PER_S)
#define RANK 3
#define PID 812

static struct cw_test_record *rec;
static struct cw_record *reader;
static struct cw_connection_samples samples;
static struct cw_sampler sampler;
static int64_t now_ns;

static void set_up(void)
{
	rec = cw_test_record_new();
	now_ns = START_NS;
	rec->now_ns = START_NS;
	(void)cw_test_record_comm(rec, 0x1234, 8, RANK);
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);
	rec->connections[0] = (struct cw_rec_connection){
		.sequence = 8,
		.rank = RANK,
		.peer = 5,
		.op = 1,
		.steps = 40,
		.counts = { 12, 9, 9, 4 },
		.comm_plus_1 = 1,
		.channel = 1,
		.flags = CW_REC_CONNECTION_USED | CW_REC_CONNECTION_SEND |
			 CW_REC_CONNECTION_DETAILED,
		.open_ops = 2,
		.newest_ns = START_NS,
		.bytes = 1000,
	};
}

static void tear_down(void)
{
	cw_connection_samples_fini(&samples);
	cw_sampler_fini(&sampler);
	reader = cw_record_close(reader);
	rec = cw_test_record_free(rec);
}

TestSuite(connection_samples, .init = set_up, .fini = tear_down);

static const struct cw_connection_sample *take(int64_t after_ns)
{
	now_ns += after_ns;
	cr_assert_eq(cw_record_refresh(reader), 0);
	cr_assert_eq(cw_connection_samples_take(&samples, reader, now_ns), 0);
	cr_assert_eq(samples.n, 1);
	return &samples.v[0];
}

static void done(uint32_t n, uint64_t bytes)
{
	rec->connections[0].counts[CW_REC_STEP_DONE] = n;
	rec->connections[0].bytes = bytes;
	rec->connections[0].sequence += 2;
}

Test(connection_samples, knows_since_when_the_counts_are_the_same)
{
	(void)take(0);
	(void)take(CW_NS_PER_S);
	cr_assert_eq(take(CW_NS_PER_S)->same_since_ns, START_NS);
	done(5, 1000);
	(void)take(CW_NS_PER_S);
	cr_assert_eq(take(CW_NS_PER_S)->same_since_ns, START_NS + 3 * CW_NS_PER_S);
}

Test(connection_samples, begins_anew_with_another_op)
{
	(void)take(0);
	rec->connections[0].op = 2;
	cr_assert_eq(take(CW_NS_PER_S)->same_since_ns, START_NS + CW_NS_PER_S);
}

Test(connection_samples, begins_anew_with_the_next_replay_of_the_op)
{
	(void)take(0);
	rec->connections[0].replay = 7;
	cr_assert_eq(take(CW_NS_PER_S)->same_since_ns, START_NS + CW_NS_PER_S);
}

Test(connection_samples, measures_time_and_rate_of_steps)
{
	const struct cw_connection_sample *c;

	(void)take(0); /* five steps wait */
	done(9, 5000);
	c = take(2 * CW_NS_PER_S); /* none waits any more: 5 s of waiting for five steps */
	cr_assert_eq(cw_connection_sample_held_ns(c), CW_NS_PER_S);
	cr_assert_eq(cw_connection_sample_bytes_per_s(c, samples.taken_ns), 2000);
}

Test(connection_samples, count_what_is_not_recorded)
{
	rec->header->drops[CW_REC_DROP_CONNECTIONS] = 3;
	rec->connections[1] = rec->connections[0];
	rec->connections[1].peer = -5;
	(void)take(0);
	cr_assert_eq(samples.lost, 4);
}

/* ---- the digest ---- */

/* The digest of the rank, and of a second process if it is not NULL. */
static struct cw_digest digest_of(struct cw_record *other, const struct cw_sampler *other_sampler)
{
	const struct cw_digest_rank ranks[] = {
		{ .record = reader,
		  .sampler = &sampler,
		  .now_ns = now_ns,
		  .pid = PID,
		  .start_ticks = 1,
		  .liveness = CW_LIVE_ALIVE },
		{ .record = other,
		  .sampler = other_sampler,
		  .now_ns = now_ns,
		  .pid = PID + 1,
		  .start_ticks = 1,
		  .liveness = CW_LIVE_ALIVE },
	};
	struct cw_job_id job = { .label = "test:job", .uid = 1000 };
	const struct cw_digest_source source = { .node = "node-a",
						 .job = &job,
						 .ranks = ranks,
						 .n_ranks = other ? 2 : 1,
						 .is_sent = true };
	struct cw_digest digest;

	cr_assert_eq(cw_digest_make(&source, &digest), 0);
	cr_assert_eq(digest.msg.n_ranks, source.n_ranks);
	return digest;
}

static void sample_for(struct cw_sampler *of, struct cw_record *record, int64_t ns)
{
	for (int64_t end = now_ns + ns; now_ns < end; now_ns += CW_NS_PER_S / 4)
		cr_assert_eq(cw_sampler_sample(of, record, now_ns), 0);
}

Test(connection_samples, reach_the_digest_when_the_op_stands_still)
{
	const struct cw_msg_connection *c;
	struct cw_digest digest;

	(void)cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1000);
	sample_for(&sampler, reader, CW_NS_PER_S);
	digest = digest_of(NULL, NULL);
	cr_assert_eq(digest.msg.ranks[0].members[0].n_connections, 0, "the op is young");
	cw_digest_fini(&digest);
	sample_for(&sampler, reader, 3 * CW_NS_PER_S);
	digest = digest_of(NULL, NULL);
	cr_assert_eq(digest.msg.ranks[0].members[0].n_connections, 1);
	c = &digest.msg.ranks[0].members[0].connections[0];
	cr_assert_eq(c->peer, 5);
	cr_assert_eq(c->seq, 1, "the number by which the peer knows the op");
	cr_assert_eq(c->flags, CW_CONNECTION_SEND | CW_CONNECTION_DETAILED);
	cr_assert_eq(c->posted, 12);
	cr_assert_eq(c->done, 4);
	cr_assert_eq(c->moved_age_ns, 4 * CW_NS_PER_S);
	cr_assert_geq(c->same_since_age_ns, 2 * CW_NS_PER_S);
	cw_digest_fini(&digest);
}

Test(connection_samples, leave_the_digest_when_the_op_ends)
{
	uint64_t op = cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1000);
	struct cw_digest digest;

	sample_for(&sampler, reader, 3 * CW_NS_PER_S);
	cw_test_record_return(rec, 0, op, 0);
	cw_test_record_progress(rec, 0, op, op);
	sample_for(&sampler, reader, CW_NS_PER_S / 4);
	digest = digest_of(NULL, NULL);
	cr_assert_eq(digest.msg.ranks[0].members[0].n_connections, 0);
	cw_digest_fini(&digest);
}

/* With PXN another process of the node moves the data of this rank. */
Test(connection_samples, of_another_process_belong_to_the_rank_that_issued_the_op)
{
	struct cw_test_record *other = cw_test_record_new();
	struct cw_record *other_reader = NULL;
	struct cw_sampler other_sampler;
	struct cw_digest digest;

	other->now_ns = START_NS;
	(void)cw_test_record_comm(other, 0x1234, 8, 0);
	(void)cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 1000);
	(void)cw_test_record_collective(other, 0, CW_OP_ALL_REDUCE, 1000);
	other->connections[0] = rec->connections[0];
	other->connections[0].pid = PID;
	rec->connections[0].flags = 0;
	cr_assert_eq(cw_record_open(cw_test_record_dup(other), true, &other_reader, NULL), 0);
	cw_sampler_init(&other_sampler);
	sample_for(&sampler, reader, 3 * CW_NS_PER_S);
	now_ns = START_NS;
	sample_for(&other_sampler, other_reader, 3 * CW_NS_PER_S);
	digest = digest_of(other_reader, &other_sampler);
	cr_assert_eq(digest.msg.ranks[0].members[0].n_connections, 1);
	cr_assert(digest.msg.ranks[0].members[0].connections[0].flags & CW_CONNECTION_FOREIGN);
	cr_assert_eq(digest.msg.ranks[0].members[0].connections[0].seq, 1);
	cr_assert_eq(digest.msg.ranks[1].members[0].n_connections, 0);
	cw_digest_fini(&digest);
	cw_sampler_fini(&other_sampler);
	cw_record_close(other_reader);
	cw_test_record_free(other);
}
