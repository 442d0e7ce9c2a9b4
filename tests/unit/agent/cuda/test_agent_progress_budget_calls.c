/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_PROGRESS=auto from the calls to the reader's view of the record. The record's clock
 * moves only when a test advances it. Every test runs in a process of its own.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/cuda/progress_budget.h"
#include "agent/hooks/wrap.h"
#include "agent/record/clock.h"
#include "agent/record/comms.h"
#include "model/op.h"
#include "record/record_reader.h"
#include "tests/support/agent/agent_fake_nccl.h"
#include "tests/support/agent/cuda/fake_cuda.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define STEP_OPS 300u

static char context;
static ncclComm_t comm;
static struct cw_record *reader;

/* The device, inside a call: inside = hang. */
static void hang(void)
{
	fake_cuda.holds_writes = true;
}

static void pass(uint64_t ns)
{
	CW_STORE(cw_clock.rates[1].ns, cw_clock.rates[1].ns + ns);
}

/* The helper thread gives the processor's clock up, and the one rate there is does not run. */
static void stop_clock(void)
{
	(void)cw_clock_calibrate((struct cw_clock_point){ .ticks = 2, .ns = cw_now_ns() });
	cr_assert_not(cw_clock_calibrate((struct cw_clock_point){ 1, cw_now_ns() + 1000000 * US }));
	cw_clock.rates[1] = (struct cw_clock_rate){ .ns = cw_now_ns(), .valid = UINT64_MAX };
	CW_STORE(cw_clock.rate_generation, 1u);
	pass(MS);
	cr_assert_eq(cw_op_ns(), cw_clock.rates[1].ns);
}

static void begin(const char *progress)
{
	ncclUniqueId id = { { 1 } };

	cr_assert_eq(setenv("COLLWATCH_PROGRESS", progress, 1), 0);
	stop_clock();
	fake_cuda.stream_owner = fake_cuda.current = &context;
	cr_assert_eq(cw_impl_ncclCommInitRank(&fake, NULL, &comm, 4, id, 0), ncclSuccess);
	cr_assert_eq(cw_record_open(dup(cw_record.fd), true, &reader, NULL), 0);
}

static const struct cw_rec_op *last_op(void)
{
	return last(&cw_record.comms[0]);
}

static bool call(size_t count, uintptr_t stream)
{
	unsigned before = fake_cuda.writes;

	(void)cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, count, CW_DTYPE_FP32, CW_REDOP_SUM,
				    comm, (cudaStream_t)stream);
	return fake_cuda.writes > before;
}

static void calls(unsigned n, uint64_t each_ns)
{
	for (unsigned i = 0; i < n; i++) {
		pass(each_ns);
		(void)call(8, 1);
	}
}

/* All but the last are alike. Returns whether that had writes. */
static bool step(void)
{
	bool is_written;

	calls(STEP_OPS - 1, 10 * US);
	is_written = call(1, 1);
	pass(3 * MS);
	return is_written;
}

static void call_until(bool is_written)
{
	for (unsigned i = 0; i < 10000; i++) {
		pass(10 * US);
		if (call(8, 1) == is_written)
			return;
	}
	cr_assert_fail("none is");
}

static void call_until_one_is_untracked(void)
{
	call_until(false);
}

static struct cw_record_state state(void)
{
	struct cw_record_state s;
	size_t n;

	cr_assert_eq(cw_record_refresh(reader), 0);
	cr_assert_eq(cw_record_state(reader, cw_record_comms(reader, &n), &s), 0);
	return s;
}

static uint64_t untracked(void)
{
	return cw_record.header->progress_untracked;
}

Test(agent_progress_budget_calls, writes_every_pair_when_on)
{
	begin("on");
	calls(100000, 10 * US);
	cr_expect_eq(fake_cuda.writes, 200000);
	cr_expect_eq(untracked(), 0);
}

Test(agent_progress_budget_calls, spends_what_the_stream_has_earned)
{
	uint64_t begin_ns, allowed;

	begin("auto");
	begin_ns = cw_op_ns();
	calls(100000, 100 * US);
	allowed = (cw_op_ns() - begin_ns + CW_PROGRESS_BUDGET_IN_HAND_NS) *
		  CW_PROGRESS_BUDGET_EARNED_IN_1000 / 1000;
	cr_expect_leq((fake_cuda.writes / 2 - CW_PROGRESS_BUDGET_FIRST_OPS) *
			      CW_PROGRESS_BUDGET_PAIR_NS,
		      allowed);
	cr_expect_eq(untracked(), 100000 - fake_cuda.writes / 2);
	cr_expect_gt(untracked(), 80000);
	cr_expect_eq(cw_record.comms[0].coll_returned, 100000, "all are counted");
}

Test(agent_progress_budget_calls, writes_the_last_call_of_a_step_from_the_second_on)
{
	begin("auto");
	(void)step();
	for (unsigned i = 1; i < 300; i++)
		cr_assert(step(), "step %u", i);
	cr_expect_gt(untracked(), 300 * STEP_OPS / 2, "%lu", untracked());
	cr_expect(state().completed_known);
	cr_expect_eq(state().coll_completed, 300 * STEP_OPS);
}

/* The reader then knows the same as with "on". */
static void hang_at_the_end_of_a_step(const char *progress)
{
	struct cw_record_state s;

	begin(progress);
	for (unsigned i = 0; i < 50; i++)
		(void)step();
	calls(STEP_OPS - 1, 10 * US);
	inside = hang;
	(void)call(1, 1);
	s = state();
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.coll_seq, 51 * STEP_OPS);
	cr_expect_eq(s.pending.progress, CW_PROGRESS_REACHED);
	cr_expect(s.completed_known && s.reached_known);
	cr_expect_eq(s.coll_completed, 51 * STEP_OPS - 1);
	cr_expect_eq(s.coll_reached, 51 * STEP_OPS);
	cr_expect_eq(s.pending_count, 1);
}

Test(agent_progress_budget_calls, a_hang_at_the_end_of_a_step_is_seen_when_on)
{
	hang_at_the_end_of_a_step("on");
	cr_expect_eq(untracked(), 0);
}

Test(agent_progress_budget_calls, a_hang_at_the_end_of_a_step_is_seen_as_when_on)
{
	hang_at_the_end_of_a_step("auto");
	cr_expect_gt(untracked(), 0);
}

Test(agent_progress_budget_calls, a_call_that_is_untracked_is_unknown_until_a_later_one_is_reached)
{
	struct cw_record_state s;
	uint64_t seq;

	begin("auto");
	call_until_one_is_untracked();
	seq = cw_record.comms[0].coll_returned;
	s = state();
	cr_expect_not(s.completed_known);
	cr_expect_not(s.has_pending);
	cr_expect_eq(s.last.progress, CW_PROGRESS_UNKNOWN);
	inside = hang;
	pass(3 * MS);
	cr_assert(call(8, 1));
	s = state();
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, seq, "the stream is past it");
	cr_expect_eq(s.pending.coll_seq, seq + 1);
}

Test(agent_progress_budget_calls, leaves_out_no_group_no_send_and_nothing_that_may_end_early)
{
	begin("auto");
	call_until_one_is_untracked();
	for (unsigned i = 0; i < 40; i++) {
		unsigned before = fake_cuda.writes;

		(void)cw_impl_ncclBroadcast(&fake, NULL, NULL, NULL, 8, CW_DTYPE_FP32, 0, comm,
					    (cudaStream_t)1);
		(void)cw_impl_ncclSend(&fake, NULL, NULL, 8, CW_DTYPE_FP32, 1, comm,
				       (cudaStream_t)1);
		(void)cw_impl_ncclGroupStart(&fake, NULL);
		(void)call(8, 1);
		(void)cw_impl_ncclGroupEnd(&fake, NULL);
		cr_assert_eq(fake_cuda.writes, before + 6);
	}
}

/* One handle, a stream for each thread: a later op of another thread's says nothing. */
Test(agent_progress_budget_calls, leaves_nothing_out_on_the_per_thread_stream)
{
	begin("auto");
	for (unsigned i = 0; i < 10000; i++) {
		pass(10 * US);
		cr_assert(call(8, 2));
	}
}

Test(agent_progress_budget_calls, writes_the_call_after_one_that_failed)
{
	begin("auto");
	for (unsigned i = 0; i < 20; i++) {
		call_until_one_is_untracked();
		answer = 1;
		call_until(true);
		answer = ncclSuccess;
		cr_assert(call(8, 1));
	}
}

Test(agent_progress_budget_calls, a_call_that_is_untracked_and_fails_is_as_any_that_fails)
{
	begin("auto");
	call_until_one_is_untracked();
	answer = 1;
	cr_assert_not(call(8, 1));
	cr_expect(last_op()->flags & CW_OPF_DROPPED);
	cr_expect_eq(cw_record.comms[0].coll_entered, cw_record.comms[0].coll_returned);
}

Test(agent_progress_budget_calls, every_stream_earns_for_itself)
{
	begin("auto");
	call_until_one_is_untracked();
	for (unsigned i = 0; i < 500; i++) {
		pass(10 * US);
		cr_assert(call(8, 3));
	}
}
