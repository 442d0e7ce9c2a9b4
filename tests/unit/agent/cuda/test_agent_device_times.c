/* SPDX-License-Identifier: Apache-2.0 */
/* Which ops are timed on the device, and how. Every test runs in a process of its own. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/cuda/kernels.h"
#include "agent/hooks/wrap.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "tests/support/agent/cuda/fake_cuda.h"

static char context;
static char handle;
static ncclResult_t answer;
static unsigned launches_inside;

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	*comm = (ncclComm_t)&handle;
	return ncclSuccess;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	launches_inside = fake_cuda.launches;
	return answer;
}

static ncclResult_t fake_group(void)
{
	return ncclSuccess;
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclGroupStart = fake_group,
	.ncclGroupEnd = fake_group,
	.ncclCommInitRank = fake_init,
};

static ncclComm_t init(const char *progress)
{
	ncclUniqueId id = { { 0 } };
	ncclComm_t comm;

	if (!cw_kernel_image_bytes)
		cr_skip_test("built without nvcc and clang: there is no kernel");
	(void)setenv("COLLWATCH_PROGRESS", progress, 1);
	fake_cuda.stream_owner = fake_cuda.current = &context;
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, 4, id, 1);
	return comm;
}

static void call(ncclComm_t comm)
{
	(void)cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, 8, CW_DTYPE_FP32, CW_REDOP_SUM, comm,
				    NULL);
}

/* One op is timed in 10 ms, and that is one of the next eight. */
static void timed_call(ncclComm_t comm)
{
	uint64_t end = cw_now_ns() + 10000001;

	while (cw_now_ns() < end)
		;
	for (unsigned i = 0; i < 8; i++)
		call(comm);
}

Test(agent_device_times, only_when_asked_for)
{
	call(init("auto"));
	cr_assert(fake_cuda.modules == 0 && fake_cuda.launches == 0);
	cr_assert_not(cw_record.header->has & CW_REC_HAS_DEVICE_TIME);
}

Test(agent_device_times, one_stamp_before_the_op_and_one_behind_it)
{
	const struct cw_rec_time *t;
	ncclComm_t comm = init("timed");

	call(comm);
	t = &cw_record.times[1];
	cr_assert(cw_record.header->has & CW_REC_HAS_DEVICE_TIME);
	cr_assert_eq(launches_inside, 1);
	cr_assert_eq(fake_cuda.launches, 2);
	cr_assert(t->publish == 1 && t->op_index == 2 && t->kind == CW_OP_ALL_REDUCE);
	cr_assert(t->bytes == 32 && t->enter_ns > 0);
	cr_assert_eq(t->end_ns - t->begin_ns, 500);
}

Test(agent_device_times, a_few_of_many)
{
	ncclComm_t comm = init("timed");
	uint64_t start = cw_now_ns(), spent;

	for (unsigned i = 0; i < 1000; i++)
		call(comm);
	spent = cw_now_ns() - start;
	cr_assert_leq(fake_cuda.launches, 2 * (spent / 10000000 + 1));
}

Test(agent_device_times, entry_that_waits_for_its_stream_is_not_given_away)
{
	ncclComm_t comm = init("timed");

	fake_cuda.is_stuck = true;
	for (unsigned i = 0; i < CW_REC_TIMES; i++)
		timed_call(comm);
	cr_assert_eq(fake_cuda.launches, 2 * CW_REC_TIMES);
	timed_call(comm);
	cr_assert_eq(fake_cuda.launches, 2 * CW_REC_TIMES);
}

Test(agent_device_times, one_entry_that_never_ends_does_not_end_the_others)
{
	ncclComm_t comm = init("timed");
	const struct cw_rec_time *later = &cw_record.times[(CW_REC_TIMES + 2) % CW_REC_TIMES];

	fake_cuda.is_stuck = true;
	call(comm);
	fake_cuda.is_stuck = false;
	for (unsigned i = 0; i < 2 * CW_REC_TIMES && later->publish <= CW_REC_TIMES; i++)
		timed_call(comm);
	cr_assert_gt(later->publish, CW_REC_TIMES);
	cr_assert_eq(cw_record.times[1].end_ns, 0, "it still waits");
}

Test(agent_device_times, failed_grouped_and_captured_ops_tell_nothing)
{
	ncclComm_t comm = init("timed");

	answer = ncclInvalidUsage;
	call(comm);
	cr_assert_eq(cw_record.times[1].publish, 0);
	cr_assert_neq(cw_record.times[1].end_ns, 0, "the entry is free again");
	answer = ncclSuccess;
	(void)cw_impl_ncclGroupStart(&fake, NULL);
	timed_call(comm);
	(void)cw_impl_ncclGroupEnd(&fake, NULL);
	cr_assert_eq(fake_cuda.launches, 2);
	fake_cuda.capture_status = 1;
	timed_call(comm);
	cr_assert_eq(fake_cuda.launches, 2);
}
