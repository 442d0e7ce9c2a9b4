/* SPDX-License-Identifier: Apache-2.0 */
#include "digest/digest.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "digest/window.h"
#include "model/snapshot.h"
#include "proto/ages.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "record/pod.h"
#include "tests/support/record/record_writer.h"

#define NOW_NS (1000 * CW_NS_PER_S)

/* A process without its agent: the sources of a digest. */
struct fake {
	struct cw_test_record *writer;
	struct cw_record *record;
	struct cw_sampler sampler;
	struct cw_nonfinite_input nonfinite_input;
	struct cw_digest_rank rank;
	char label[CW_JOB_LABEL_BYTES];
};

static void fake_start(struct fake *f, int rank)
{
	*f = (struct fake){ .writer = cw_test_record_new() };
	f->writer->header->rank_label = rank;
	f->writer->now_ns = NOW_NS - 5 * CW_NS_PER_S;
	f->rank = (struct cw_digest_rank){
		.now_ns = NOW_NS, .pid = 100 + rank, .start_ticks = 1, .liveness = CW_LIVE_ALIVE
	};
	cw_sampler_init(&f->sampler);
}

static void fake_sample(struct fake *f)
{
	const struct cw_record_comm *comms;
	struct cw_err err;
	size_t n;

	if (!f->record)
		cr_assert_eq(cw_record_open(cw_test_record_dup(f->writer), true, &f->record, &err),
			     0);
	cr_assert_eq(cw_sampler_sample(&f->sampler, f->record, NOW_NS - CW_NS_PER_S), 0);
	comms = cw_record_comms(f->record, &n);
	(void)cw_job_label(cw_record_header(f->record), comms, n, f->label);
}

static void fake_stop(struct fake *f)
{
	cw_sampler_fini(&f->sampler);
	cw_record_close(f->record);
	cw_test_record_free(f->writer);
}

/* As they are now; free(). */
static struct cw_digest_rank *ranks_of(struct fake *fakes, uint32_t n)
{
	struct cw_digest_rank *v = calloc(n, sizeof(*v));

	for (uint32_t i = 0; i < n; i++) {
		v[i] = fakes[i].rank;
		v[i].record = fakes[i].record;
		v[i].sampler = &fakes[i].sampler;
		v[i].nonfinite_input = &fakes[i].nonfinite_input;
	}
	return v;
}

static void collect(struct fake *fakes, uint32_t n, const struct cw_msg_window_request *request,
		    struct cw_msg_window_reply *ret)
{
	struct cw_digest_rank *v = ranks_of(fakes, n);

	cr_assert_eq(cw_window_collect(v, n, request, ret), 0);
	free(v);
}

/* As many stacks as there can be, as long as their parts can be. */
static void fill_stacks(struct cw_test_record *rec, unsigned rank)
{
	rec->header->has |= CW_REC_HAS_STACKS;
	for (unsigned i = 0; i < CW_REC_FRAMES; i++) {
		struct cw_rec_frame *f = &rec->frames[i];

		f->publish = 1;
		f->line = 1000000 * (rank + 1) + i;
		memset(f->file, 'f', sizeof(f->file) - 1);
		memset(f->function, 'g', sizeof(f->function) - 1);
	}
	for (unsigned i = 0; i < CW_REC_STACKS; i++) {
		rec->stacks[i].publish = 1;
		rec->stacks[i].n_python = CW_REC_STACK_PYTHON;
		for (unsigned k = 0; k < CW_REC_STACK_PYTHON; k++)
			rec->stacks[i].python[k] = (uint16_t)(i + k + 1);
	}
}

static void make(struct fake *fakes, uint32_t n, struct cw_digest *ret)
{
	struct cw_digest_rank *v = ranks_of(fakes, n);
	struct cw_job_id job;
	struct cw_digest_source source = { .node = "node-a",
					   .job = &job,
					   .epoch = 7,
					   .number = 3,
					   .ranks = v,
					   .n_ranks = n,
					   .is_sent = true };

	cr_assert_eq(cw_job_id_make(0, fakes[0].label, &job), 0);
	cr_assert_eq(cw_digest_make(&source, ret), 0);
	free(v);
}

Test(digest, gives_ages_not_instants)
{
	struct cw_digest digest;
	struct fake f;
	int comm;

	fake_start(&f, 0);
	comm = cw_test_record_comm(f.writer, 0x11, 8, 0);
	(void)cw_test_record_collective(f.writer, comm, CW_OP_ALL_REDUCE, 1000);
	fake_sample(&f);
	make(&f, 1, &digest);
	cr_assert_eq(digest.msg.ranks[0].sampled_age_ns, CW_NS_PER_S);
	cr_assert_eq(digest.msg.ranks[0].members[0].progress_age_ns, CW_NS_PER_S);
	cr_assert_gt(digest.msg.ranks[0].members[0].pending->enter_age_ns, 4 * CW_NS_PER_S);
	cr_assert_leq(digest.msg.ranks[0].members[0].pending->enter_age_ns, 5 * CW_NS_PER_S);
	cw_digest_fini(&digest);
	fake_stop(&f);
}

Test(digest, says_what_a_rank_fed_in_also_when_it_is_dead)
{
	struct cw_digest digest;
	struct fake f[2];

	for (int i = 0; i < 2; i++) {
		fake_start(&f[i], i);
		(void)cw_test_record_comm(f[i].writer, 0x11, 8, i);
		fake_sample(&f[i]);
	}
	f[1].nonfinite_input =
		(struct cw_nonfinite_input){ .seen_ns = NOW_NS - 14 * CW_NS_PER_S,
					     .comm_name = "dp",
					     .tensor_stats = { .kind = CW_OP_ALL_REDUCE,
							       .dtype = CW_DTYPE_FP32,
							       .seq = 812,
							       .elements = 4096,
							       .nans = 3 } };
	f[1].rank.liveness = CW_LIVE_KILLED;
	make(f, 2, &digest);
	cr_expect_str_eq(digest.msg.ranks[0].nonfinite_input, "");
	cr_expect_str_eq(digest.msg.ranks[1].nonfinite_input,
			 "rank 1 fed 3 NaN and 0 Inf among 4096 fp32 into all_reduce #812 on dp");
	cr_expect_eq(digest.msg.ranks[1].nonfinite_input_age_ns, 14 * CW_NS_PER_S);
	cw_digest_fini(&digest);
	fake_stop(&f[0]);
	fake_stop(&f[1]);
}

/* Variables do not change, and a healthy rank need not repeat them once a second. */
Test(digest, sends_the_variables_of_a_rank_that_stands_still)
{
	struct cw_digest digest;
	struct fake f[2];

	for (int i = 0; i < 2; i++) {
		int comm;

		fake_start(&f[i], i);
		strcpy(f[i].writer->variables->text, "NCCL_ALGO=Ring");
		f[i].writer->variables->omitted = 2;
		comm = cw_test_record_comm(f[i].writer, 0x11, 8, i);
		fake_sample(&f[i]);
		(void)cw_test_record_collective(f[i].writer, comm, CW_OP_ALL_REDUCE, 8);
		cr_assert_eq(cw_sampler_sample(&f[i].sampler, f[i].record, NOW_NS - 500000000), 0);
	}
	cr_assert_eq(cw_sampler_sample(&f[1].sampler, f[1].record, NOW_NS + CW_NS_PER_S), 0);
	make(f, 2, &digest);
	cr_expect_str_eq(digest.msg.ranks[0].nccl_variables, "");
	cr_expect_eq(digest.msg.ranks[0].nccl_variables_omitted, 0);
	cr_expect_str_eq(digest.msg.ranks[1].nccl_variables, "NCCL_ALGO=Ring");
	cr_expect_eq(digest.msg.ranks[1].nccl_variables_omitted, 2);
	cw_digest_fini(&digest);
	fake_stop(&f[0]);
	fake_stop(&f[1]);
}

Test(digest, says_when_the_jobs_own_watchdog_and_its_network_give_up)
{
	struct cw_digest digest;
	struct fake f[3];

	for (int i = 0; i < 3; i++) {
		fake_start(&f[i], i);
		(void)cw_test_record_comm(f[i].writer, 0x11, 8, i);
	}
	f[0].writer->header->job_timeout_ns = 1800 * CW_NS_PER_S;
	strcpy(f[0].writer->header->job_timeout_source,
	       "--distributed-timeout-minutes 30 in its arguments");
	strcpy(f[2].writer->header->job_timeout_source, "COLLWATCH_JOB_TIMEOUT in its environment");
	f[0].writer->header->net_retry_ns = 34 * CW_NS_PER_S;
	f[1].writer->header->job_timeout_ns = 600 * CW_NS_PER_S;
	f[1].writer->header->is_timeout_assumed = 1;
	f[2].writer->header->job_timeout_ns = f[2].writer->header->net_retry_ns = UINT64_MAX - 7;
	f[2].writer->header->is_timeout_assumed = 1;
	for (int i = 0; i < 3; i++)
		fake_sample(&f[i]);
	make(f, 3, &digest);
	cr_expect_eq(digest.msg.ranks[0].job_timeout_ns, 1800 * CW_NS_PER_S);
	cr_expect_str_eq(digest.msg.ranks[0].job_timeout_source,
			 "--distributed-timeout-minutes 30 in its arguments");
	cr_expect_str_eq(digest.msg.ranks[1].job_timeout_source, "");
	cr_expect_str_eq(digest.msg.ranks[2].job_timeout_source, "", "of no time");
	cr_expect_eq(digest.msg.ranks[0].net_retry_ns, 34 * CW_NS_PER_S);
	cr_expect_eq(digest.msg.ranks[0].flags & CW_RANKF_TIMEOUT_ASSUMED, 0);
	cr_expect_eq(digest.msg.ranks[1].job_timeout_ns, 600 * CW_NS_PER_S);
	cr_expect_neq(digest.msg.ranks[1].flags & CW_RANKF_TIMEOUT_ASSUMED, 0);
	cr_expect_eq(digest.msg.ranks[2].job_timeout_ns, 0, "584 years");
	cr_expect_eq(digest.msg.ranks[2].net_retry_ns, 0);
	cr_expect_eq(digest.msg.ranks[2].flags & CW_RANKF_TIMEOUT_ASSUMED, 0);
	cw_digest_fini(&digest);
	for (int i = 0; i < 3; i++)
		fake_stop(&f[i]);
}

Test(digest, passes_on_no_text_that_is_none)
{
	static const char *const texts[] = { "two\nlines", "\x1b[2J", "\xff\xfe" };
	struct cw_digest digest;
	struct fake f[4];

	for (int i = 0; i < 4; i++) {
		fake_start(&f[i], i);
		(void)cw_test_record_comm(f[i].writer, 0x11, 8, i);
		f[i].writer->header->job_timeout_ns = 600 * CW_NS_PER_S;
		if (i < 3)
			strcpy(f[i].writer->header->job_timeout_source, texts[i]);
	}
	memset(f[3].writer->header->job_timeout_source, 'x',
	       sizeof(f[3].writer->header->job_timeout_source));
	for (int i = 0; i < 4; i++)
		fake_sample(&f[i]);
	make(f, 4, &digest);
	for (int i = 0; i < 4; i++)
		cr_expect_str_eq(digest.msg.ranks[i].job_timeout_source, "", "rank %d", i);
	cw_digest_fini(&digest);
	for (int i = 0; i < 4; i++)
		fake_stop(&f[i]);
}

Test(digest, believes_no_impossible_time)
{
	struct cw_record_op op = { .enter_mono_ns = INT64_MAX,
				   .return_mono_ns = -5,
				   .flags = CW_OPF_RETURNED };
	struct cw_msg_op said = cw_ages_of_op(&op, NOW_NS);

	cr_assert_eq(said.enter_age_ns, 0, "in the future");
	cr_assert_eq(said.return_age_ns, NOW_NS, "before the machine started");
}

Test(digest, carries_near_and_far_checkpoints)
{
	static const uint64_t expected[] = { 5000, 4992, 4928, 4608, 4096 };
	const struct cw_msg_member *m;
	struct cw_digest digest;
	struct fake f;
	int comm;

	fake_start(&f, 0);
	comm = cw_test_record_comm(f.writer, 0x11, 8, 0);
	for (uint64_t seq = 1; seq <= 5003; seq++) {
		int slot = cw_checkpoint_slot(seq - 1, seq);

		if (slot >= 0)
			f.writer->comms[comm].checkpoints[slot] =
				(struct cw_rec_checkpoint){ .coll_seq = seq, .hash = 7 * seq };
	}
	fake_sample(&f);
	make(&f, 1, &digest);
	m = &digest.msg.ranks[0].members[0];
	cr_assert_eq(m->n_checkpoints, 5, "%u", m->n_checkpoints);
	for (unsigned i = 0; i < 5; i++) {
		cr_expect_eq(m->checkpoints[i].coll_seq, expected[i]);
		cr_expect_eq(m->checkpoints[i].hash, 7 * expected[i]);
	}
	cw_digest_fini(&digest);
	fake_stop(&f);
}

/* Eight calls that take longer than a second: each may be the one with the difference. */
Test(digest, tells_the_hash_after_each_call_where_checkpoints_are_seldom)
{
	const struct cw_msg_member *m;
	struct cw_track *t;
	struct cw_digest digest;
	struct fake f;
	int comm;

	fake_start(&f, 0);
	comm = cw_test_record_comm(f.writer, 0x11, 8, 0);
	fake_sample(&f);
	for (unsigned i = 0; i < 3; i++)
		cw_test_record_return(
			f.writer, comm,
			cw_test_record_collective(f.writer, comm, CW_OP_ALL_REDUCE, 10 + i), 0);
	fake_sample(&f);
	make(&f, 1, &digest);
	m = &digest.msg.ranks[0].members[0];
	cr_assert_eq(m->n_last_hashes, 3, "%u", m->n_last_hashes);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(m->last_hashes[i].coll_seq, i + 1);
	cr_expect_eq(m->last_hashes[2].hash, f.writer->comms[comm].hash);
	cw_digest_fini(&digest);

	/*
	 * A checkpoint of a moment ago says as much; an earlier digest already has the older ones.
	 */
	t = &f.sampler.tracks[0];
	t->checkpoint_ns = NOW_NS - CW_NS_PER_S / 2;
	make(&f, 1, &digest);
	cr_expect_eq(digest.msg.ranks[0].members[0].n_last_hashes, 0);
	cw_digest_fini(&digest);
	t->checkpoint_ns = 0;
	t->commits_ns = NOW_NS - 16 * CW_NS_PER_S;
	make(&f, 1, &digest);
	cr_expect_eq(digest.msg.ranks[0].members[0].n_last_hashes, 0);
	cw_digest_fini(&digest);
	fake_stop(&f);
}

Test(digest, says_whose_calls_only_the_profiler_tells)
{
	struct cw_rec_comm *profiled;
	struct cw_digest digest;
	struct fake f;

	fake_start(&f, 0);
	f.writer->comms[cw_test_record_comm(f.writer, 0x11, 8, 0)].ready_ns += 43;
	profiled = &f.writer->comms[cw_test_record_comm(f.writer, 0x22, 8, 3)];
	profiled->flags |= CW_REC_COMM_PROFILER;
	profiled->ready_ns += 1;
	fake_sample(&f);
	make(&f, 1, &digest);
	cr_assert_eq(digest.msg.ranks[0].n_members, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct cw_msg_member *m = &digest.msg.ranks[0].members[i];

		cr_expect_eq(m->by_profiler, m->comm_id == 0x22);
		cr_expect_eq(m->making_ns, m->comm_id == 0x22 ? 0 : 43);
	}
	cw_digest_fini(&digest);
	fake_stop(&f);
}

Test(digest, tells_of_a_blocking_call_outside_any_comm)
{
	struct cw_digest digest;
	struct fake f;

	fake_start(&f, 0);
	f.writer->header->host_call_kind = CW_OP_COMM_INIT;
	f.writer->header->host_call_enter_ns = NOW_NS - 9 * CW_NS_PER_S;
	f.writer->header->host_call_comm_id = 0x77;
	f.writer->header->job_label[0] = '\0';
	fake_sample(&f);
	cr_assert_str_eq(f.label, "comm:0x0000000000000077");
	make(&f, 1, &digest);
	cr_assert_eq(digest.msg.ranks[0].host_call->kind, CW_OP_COMM_INIT);
	cr_assert_eq(digest.msg.ranks[0].host_call->enter_age_ns, 9 * CW_NS_PER_S);
	cr_assert_eq(digest.msg.ranks[0].host_call_comm_id, 0x77);
	cw_digest_fini(&digest);
	fake_stop(&f);
}

Test(digest, flags_the_dead_and_whoever_went_in_a_shutdown)
{
	struct cw_digest digest;
	struct fake f[2];

	for (int i = 0; i < 2; i++) {
		fake_start(&f[i], i);
		(void)cw_test_record_comm(f[i].writer, 0x11, 8, i);
		fake_sample(&f[i]);
	}
	f[1].rank.liveness = f[1].rank.death.end.liveness = CW_LIVE_KILLED;
	f[1].rank.death.end.term_signal = 9;
	f[1].rank.death.ended_ns = NOW_NS - 30 * CW_NS_PER_S;
	make(f, 2, &digest);
	cr_assert_eq(digest.msg.ranks[1].ended_age_ns, 30 * CW_NS_PER_S);
	cr_assert_eq(digest.msg.ranks[1].term_signal, 9);
	cr_assert_eq(digest.msg.ranks[1].sampled_age_ns, 0, "its record is final");
	cr_assert_eq(digest.msg.ranks[1].n_members, 1, "what it was part of");
	cr_assert_not(digest.msg.ranks[1].flags & CW_RANKF_SHUTDOWN);
	cw_digest_fini(&digest);
	f[1].rank.death.end.term_signal = 15;
	make(f, 2, &digest);
	cr_assert(digest.msg.ranks[1].flags & CW_RANKF_SHUTDOWN);
	cr_assert_not(digest.msg.ranks[0].flags & CW_RANKF_SHUTDOWN);
	cw_digest_fini(&digest);
	/* Both ended at once: a job manager may have done that, unless the kernel knows better. */
	for (unsigned i = 0; i < 2; i++) {
		f[i].rank.liveness = f[i].rank.death.end.liveness = CW_LIVE_EXITED;
		f[i].rank.death.end.exit_code = 1;
		f[i].rank.death.end.term_signal = 0;
		f[i].rank.death.ended_ns = NOW_NS - 3 * CW_NS_PER_S;
	}
	make(f, 2, &digest);
	cr_assert(digest.msg.ranks[0].flags & CW_RANKF_SHUTDOWN);
	cw_digest_fini(&digest);
	f[0].rank.end_by = CW_END_BY_NOBODY;
	f[1].rank.is_oom_killed = true;
	make(f, 2, &digest);
	cr_assert_not(digest.msg.ranks[0].flags & CW_RANKF_SHUTDOWN);
	cr_assert_not(digest.msg.ranks[1].flags & CW_RANKF_SHUTDOWN);
	cw_digest_fini(&digest);
	fake_stop(&f[0]);
	fake_stop(&f[1]);
}

/* The places of a process in one communicator, each on a device of its own, and one in another. */
static void start_with_devices(struct fake *f, int rank, const int32_t *places, uint32_t n)
{
	fake_start(f, rank);
	for (uint32_t i = 0; i < n; i++) {
		int comm = cw_test_record_comm(f->writer, 0x11, 8, places[i]);

		f->writer->comms[comm].device = (int32_t)i;
		if (i != 2)
			(void)cw_test_record_collective(f->writer, comm, CW_OP_ALL_REDUCE, 64);
	}
	f->writer->comms[cw_test_record_comm(f->writer, 0x22, 2, 1)].device = 3;
	fake_sample(f);
}

/* JAX has a process for each host, nccl-tests one for `-g` devices. */
Test(digest, tells_of_a_process_with_several_devices_as_of_so_many_ranks)
{
	static const int32_t places[] = { 4, 5, 6, 7 };
	struct cw_digest digest;
	struct fake f;

	start_with_devices(&f, 1, places, 4);
	f.writer->header->world_size_label = 2;
	fake_sample(&f);
	f.rank.liveness = f.rank.death.end.liveness = CW_LIVE_KILLED;
	f.rank.death.end.term_signal = 15;
	f.rank.death.ended_ns = NOW_NS - 3 * CW_NS_PER_S;
	make(&f, 1, &digest);
	cr_assert_eq(digest.msg.n_ranks, 4);
	for (int32_t i = 0; i < 4; i++) {
		const struct cw_msg_rank *r = &digest.msg.ranks[i];

		cr_expect_eq(r->rank, 4 + i);
		cr_expect_eq(r->world_size, 8);
		cr_expect_eq(r->device, i);
		cr_expect_eq(r->pid, 101);
		cr_expect_eq(r->term_signal, 15);
		cr_expect(r->flags & CW_RANKF_SHUTDOWN);
		cr_assert_eq(r->n_members, i == 3 ? 2 : 1);
		cr_expect_eq(r->members[0].comm_rank, 4 + i);
		cr_expect_eq(r->members[0].pending != NULL, i != 2);
	}
	cr_expect_eq(digest.msg.ranks[3].members[1].comm_id, 0x22);
	cw_digest_fini(&digest);
	fake_stop(&f);
}

/* In an order of their own, the communicator says which is which; a part of the job does not. */
Test(digest, numbers_the_ranks_of_a_process_by_its_number_or_their_places)
{
	static const int32_t places[] = { 6, 4, 7, 5 };
	struct cw_digest digest;
	struct fake f;

	start_with_devices(&f, 5, places, 4);
	f.writer->header->world_size_label = 2;
	fake_sample(&f);
	make(&f, 1, &digest);
	for (int32_t i = 0; i < 4; i++) {
		cr_expect_eq(digest.msg.ranks[i].rank, digest.msg.ranks[i].members[0].comm_rank);
		cr_expect_eq(digest.msg.ranks[i].rank, 4 + i);
	}
	cw_digest_fini(&digest);
	f.writer->header->world_size_label = 8;
	fake_sample(&f);
	make(&f, 1, &digest);
	for (int32_t i = 0; i < 4; i++)
		cr_expect_eq(digest.msg.ranks[i].rank, 5 * 4 + i);
	cr_expect_eq(digest.msg.ranks[0].world_size, 32);
	cw_digest_fini(&digest);
	f.writer->header->rank_label = -1;
	fake_sample(&f);
	make(&f, 1, &digest);
	cr_expect_eq(digest.msg.ranks[3].rank, -1, "the leader goes by the largest communicator");
	cw_digest_fini(&digest);
	fake_stop(&f);
}

/* Another device for another communicator, or one device twice, is still one rank. */
Test(digest, takes_a_rank_that_uses_two_devices_for_one)
{
	struct cw_digest digest;
	struct fake f;

	fake_start(&f, 1);
	for (int i = 0; i < 2; i++) {
		int comm = cw_test_record_comm(f.writer, 0x11 + (uint64_t)i, 8, 1);

		f.writer->comms[comm].device = i;
	}
	f.writer->comms[cw_test_record_comm(f.writer, 0x12, 8, 2)].device = 1;
	fake_sample(&f);
	make(&f, 1, &digest);
	cr_assert_eq(digest.msg.n_ranks, 1);
	cr_expect_eq(digest.msg.ranks[0].rank, 1);
	cr_expect_eq(digest.msg.ranks[0].n_members, 3);
	cw_digest_fini(&digest);
	fake_stop(&f);
}

#define MANY_RANKS 24

/* More than a frame holds: 24 ranks with 96 comms each, all text full, all numbers large. */
static void make_large(struct fake *f, int rank)
{
	fake_start(f, rank);
	for (int i = 0; i < CW_REC_COMMS; i++) {
		int comm = cw_test_record_comm(f->writer, UINT64_MAX - (uint64_t)i, 1u << 30, rank);
		struct cw_rec_comm *c = &f->writer->comms[comm];

		memset(c->name, 'n', sizeof(c->name) - 1);
		memset(c->last_error, 'e', sizeof(c->last_error) - 1);
		c->parent_id = c->nccl_hash = UINT64_MAX;
		c->split_color = c->async_error = c->last_result = INT32_MIN;
		/* One in eight waits. */
		if (i % 8 == 0)
			(void)cw_test_record_collective(f->writer, comm, CW_OP_ALL_REDUCE,
							UINT64_MAX / 8);
	}
	fake_sample(f);
}

Test(digest, fits_a_frame_and_keeps_what_is_pending)
{
	struct fake *f = calloc(MANY_RANKS, sizeof(*f));
	unsigned pending = 0, members = 0, dropped = 0;
	struct cw_message msg = { .type = CW_MSG_DIGEST };
	struct cw_digest digest;
	uint8_t *bytes;
	size_t len;

	for (int i = 0; i < MANY_RANKS; i++)
		make_large(&f[i], i);
	make(f, MANY_RANKS, &digest);
	for (uint32_t i = 0; i < digest.msg.n_ranks; i++) {
		members += digest.msg.ranks[i].n_members;
		dropped += (unsigned)digest.msg.ranks[i].dropped;
		for (uint32_t j = 0; j < digest.msg.ranks[i].n_members; j++)
			pending += digest.msg.ranks[i].members[j].pending != NULL;
	}
	cr_assert_eq(pending, MANY_RANKS * CW_REC_COMMS / 8);
	cr_assert_eq(members + dropped, MANY_RANKS * CW_REC_COMMS);
	cr_assert_gt(dropped, 0, "the test is too small");
	msg.digest = digest.msg;
	cr_assert_eq(cw_message_encode(&msg, &bytes, &len), 0);
	cr_assert_leq(len, CW_FRAME_MAX_BYTES);
	free(bytes);
	cw_digest_fini(&digest);
	for (int i = 0; i < MANY_RANKS; i++)
		fake_stop(&f[i]);
	free(f);
}

#define USUAL_RANKS 16

/* Sixteen ranks with 96 communicators each, as usual ones are: short names, small numbers. */
Test(digest, omits_no_membership_that_fits)
{
	struct fake *f = calloc(USUAL_RANKS, sizeof(*f));
	struct cw_message msg = { .type = CW_MSG_DIGEST };
	struct cw_digest digest;
	uint8_t *bytes;
	size_t len;

	for (int i = 0; i < USUAL_RANKS; i++) {
		fake_start(&f[i], i);
		for (int c = 0; c < CW_REC_COMMS; c++)
			(void)cw_test_record_comm(f[i].writer, 1000 + (uint64_t)c, USUAL_RANKS, i);
		fake_sample(&f[i]);
	}
	make(f, USUAL_RANKS, &digest);
	for (uint32_t i = 0; i < digest.msg.n_ranks; i++) {
		cr_expect_eq(digest.msg.ranks[i].n_members, CW_REC_COMMS, "rank %u: %u", i,
			     digest.msg.ranks[i].n_members);
		cr_expect_eq(digest.msg.ranks[i].dropped, 0);
	}
	msg.digest = digest.msg;
	cr_assert_eq(cw_message_encode(&msg, &bytes, &len), 0);
	free(bytes);
	cw_digest_fini(&digest);
	for (int i = 0; i < USUAL_RANKS; i++)
		fake_stop(&f[i]);
	free(f);
}

Test(digest, windows_fit_a_frame)
{
	enum { N = 40 };
	uint64_t id = 0x11;
	struct cw_msg_window_request request = { .comm_ids = &id,
						 .n_comm_ids = 1,
						 .max_ops = 100000 };
	struct cw_message msg = { .type = CW_MSG_WINDOW_REPLY };
	struct fake *f = calloc(N, sizeof(*f));
	uint8_t *bytes;
	size_t len;

	for (int i = 0; i < N; i++) {
		int comm;

		fake_start(&f[i], i);
		comm = cw_test_record_comm(f[i].writer, id, N, i);
		fill_stacks(f[i].writer, (unsigned)i);
		for (unsigned j = 0; j < 1000; j++) {
			struct cw_rec_op op = { .kind = CW_OP_ALL_REDUCE,
						.count = UINT64_MAX / 8,
						.bytes = UINT64_MAX,
						.stack_id = j % CW_REC_STACKS + 1 };

			(void)cw_test_record_enter(f[i].writer, comm, &op);
		}
		fake_sample(&f[i]);
	}
	collect(f, N, &request, &msg.window_reply);
	cr_assert_eq(msg.window_reply.n_windows, N);
	cr_assert_geq(msg.window_reply.windows[0].n_ops, 100);
	cr_assert_eq(
		msg.window_reply.windows[0].ops[msg.window_reply.windows[0].n_ops - 1].op_index,
		1000, "the newest are kept");
	cr_assert_eq(msg.window_reply.windows[0].lost, 1000 - msg.window_reply.windows[0].n_ops);
	cr_assert_geq(msg.window_reply.n_stacks, 20, "as many call stacks as there is room for");
	cr_assert_eq(cw_message_encode(&msg, &bytes, &len), 0);
	cr_assert_leq(len, CW_FRAME_MAX_BYTES);
	free(bytes);
	cw_window_fini(&msg.window_reply);
	for (int i = 0; i < N; i++)
		fake_stop(&f[i]);
	free(f);
}

Test(digest, label_comes_from_environment_then_master_then_comm)
{
	struct cw_record_comm comms[2] = { { .entry = { .comm_id = 0x1, .parent_id = 0x9 } },
					   { .entry = { .comm_id = 0x2 } } };
	struct cw_rec_header header = { .job_label = "slurm:4711", .master = "host:29500" };
	char label[CW_JOB_LABEL_BYTES];

	cr_assert(cw_job_label(&header, comms, 2, label));
	cr_assert_str_eq(label, "slurm:4711");
	header.job_label[0] = '\0';
	cr_assert(cw_job_label(&header, comms, 2, label));
	cr_assert_str_eq(label, "master:host:29500");
	header.master[0] = '\0';
	cr_assert(cw_job_label(&header, comms, 2, label));
	cr_assert_str_eq(label, "comm:0x0000000000000002", "children have other ids on each side");
	cr_assert_not(cw_job_label(&header, comms, 1, label));
	cr_assert_neq(cw_job_hash("a", 1), cw_job_hash("a", 2), "users are apart");
	cr_assert_neq(cw_job_hash("a", 1), cw_job_hash("b", 1));
	cr_assert_eq(cw_job_hash("a", 1), cw_job_hash("a", 1));
}

/* Two processes that issue calls from the same lines, which their records number differently. */
Test(window, brings_each_call_stack_once)
{
	static const uint32_t numbers[2] = { 7, 90 };
	uint64_t id = 0x11;
	struct cw_msg_window_request request = { .comm_ids = &id, .n_comm_ids = 1, .max_ops = 8 };
	struct cw_msg_window_reply reply;
	struct fake f[2];

	for (int i = 0; i < 2; i++) {
		int comm;

		fake_start(&f[i], i);
		fill_stacks(f[i].writer, 0);
		f[i].writer->stacks[numbers[i] - 1] = f[i].writer->stacks[0];
		comm = cw_test_record_comm(f[i].writer, id, 2, i);
		for (unsigned k = 0; k < 4; k++) {
			struct cw_rec_op op = { .kind = CW_OP_ALL_REDUCE, .count = 1 };

			op.stack_id = k == 0 ? 0 : k == 1 ? numbers[i] : k == 2 ? 3 : UINT32_MAX;
			(void)cw_test_record_enter(f[i].writer, comm, &op);
		}
		fake_sample(&f[i]);
	}
	collect(f, 2, &request, &reply);
	cr_assert_eq(reply.n_windows, 2);
	cr_expect_eq(reply.n_stacks, 2);
	for (int i = 0; i < 2; i++) {
		static const uint32_t wanted[] = { 0, 1, 2, 0 };

		cr_assert_eq(reply.windows[i].n_ops, 4);
		for (unsigned k = 0; k < 4; k++)
			cr_expect_eq(reply.windows[i].ops[k].stack, wanted[k], "%d %u", i, k);
	}
	cw_window_fini(&reply);
	for (int i = 0; i < 2; i++)
		fake_stop(&f[i]);
}

Test(window, holds_the_collectives_of_a_range_with_their_whole_groups)
{
	uint64_t id = 0x11;
	struct cw_msg_window_request request = {
		.comm_ids = &id, .n_comm_ids = 1, .max_ops = 100, .from_seq = 40, .to_seq = 60
	};
	struct cw_msg_window_reply reply;
	const struct cw_msg_window *w = NULL;
	struct fake f;
	int comm;

	fake_start(&f, 0);
	comm = cw_test_record_comm(f.writer, id, 8, 0);
	for (unsigned i = 1; i <= 300; i++) {
		bool in_group = i >= 59 && i <= 62;
		struct cw_rec_op op = { .kind = CW_OP_ALL_REDUCE,
					.count = i,
					.group_id = in_group ? 7 : 0,
					.flags = in_group ? CW_OPF_GROUPED : 0 };
		uint64_t index = cw_test_record_enter(f.writer, comm, &op);

		cw_test_record_return(f.writer, comm, index, 0);
	}
	fake_sample(&f);
	collect(&f, 1, &request, &reply);
	cr_assert_eq(reply.n_windows, 1);
	w = &reply.windows[0];
	cr_expect_eq(w->n_ops, 62 - 40 + 1, "%u", w->n_ops);
	cr_expect_eq(w->ops[0].coll_seq, 40);
	cr_expect_eq(w->ops[w->n_ops - 1].coll_seq, 62);
	cr_expect_eq(w->lost, 39);
	cw_window_fini(&reply);
	/* No half groups. */
	request.max_ops = 21;
	collect(&f, 1, &request, &reply);
	cr_expect_eq(reply.windows[0].n_ops, 19, "%u", reply.windows[0].n_ops);
	cw_window_fini(&reply);
	fake_stop(&f);
}

Test(digest, names_the_pod_by_the_record_and_else_by_the_control_group)
{
	struct cw_pod ids = { .name = "5f1c2a3b", .container = "0123456789ab" };
	struct fake fakes[3];
	struct cw_digest d;

	for (int i = 0; i < 3; i++)
		fake_start(&fakes[i], i);
	strcpy(fakes[0].writer->header->pod, "train-0");
	strcpy(fakes[0].writer->header->pod_namespace, "ml");
	memset(fakes[0].writer->header->container, 'x', 64); /* without an end */
	strcpy(fakes[1].writer->header->pod, "a<b>");        /* written by any user */
	for (int i = 0; i < 3; i++) {
		fakes[i].rank.pod = i < 2 ? &ids : NULL;
		fakes[i].rank.own_pid = i;
		fake_sample(&fakes[i]);
	}
	make(fakes, 3, &d);
	cr_expect_str_eq(d.msg.ranks[0].pod, "train-0");
	cr_expect_str_eq(d.msg.ranks[0].pod_namespace, "ml");
	cr_expect_str_eq(d.msg.ranks[0].container, "0123456789ab");
	cr_expect_str_eq(d.msg.ranks[1].pod, "5f1c2a3b");
	cr_expect_str_eq(d.msg.ranks[1].pod_namespace, "");
	cr_expect_eq(d.msg.ranks[1].own_pid, 1);
	cr_expect_str_eq(d.msg.ranks[2].pod, "");
	cw_digest_fini(&d);
	for (int i = 0; i < 3; i++)
		fake_stop(&fakes[i]);
}
