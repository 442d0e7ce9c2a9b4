/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of tensors that a program asks for. Every test runs in a process of its own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/cuda/kernels.h"
#include "agent/cuda/tensor_stats.h"
#include "agent/hooks/wrap.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "record/summary_math.h"
#include "tests/support/agent/cuda/fake_cuda.h"

#define COUNT 5

static char contexts[2], handle, streams[CW_SUM_STREAMS + 2];
static float tensor[COUNT] = { 1, -3, 0, 0.5f, 2 };
static struct cw_sum_tensor_stats tensor_stats;

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	*comm = (ncclComm_t)&handle;
	return ncclSuccess;
}

static const struct cw_real fake = { .ncclCommInitRank = fake_init };

static void init(void)
{
	ncclUniqueId id = { { 0 } };
	ncclComm_t comm;

	fake_cuda.stream_owner = fake_cuda.current = &contexts[0];
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, 4, id, 1);
}

static void init_loaded(void)
{
	if (!cw_kernel_image_bytes)
		cr_skip_test("built without nvcc and clang: there is no kernel");
	init();
	cr_assert(collwatch_tensor_stats_load());
}

static bool ask_on(void *stream)
{
	tensor_stats = (struct cw_sum_tensor_stats){ 0 };
	return collwatch_tensor_stats((uint64_t)(uintptr_t)tensor, COUNT, CW_DTYPE_FP32, stream,
				      (uint64_t)(uintptr_t)&tensor_stats);
}

Test(agent_tensor_stats, a_program_without_communicators_has_none)
{
	cr_assert_not(collwatch_tensor_stats_load());
	cr_assert_not(ask_on(NULL));
	cr_assert_eq(fake_cuda.modules, 0);
}

Test(agent_tensor_stats, nothing_is_loaded_unless_asked_for)
{
	init();
	cr_assert_not(ask_on(NULL));
	cr_assert_eq(fake_cuda.modules, 0);
}

Test(agent_tensor_stats, who_asks_first_has_them_with_the_next_communicator)
{
	if (!cw_kernel_image_bytes)
		cr_skip_test("built without nvcc and clang: there is no kernel");
	cr_assert_not(collwatch_tensor_stats_load());
	init();
	cr_assert_eq(fake_cuda.modules, 1);
	cr_assert(ask_on(NULL));
	cr_assert_not(cw_record.header->has & CW_REC_HAS_SUMMARIES, "nothing is recorded");
}

Test(agent_tensor_stats, tells_them_where_the_program_says)
{
	init_loaded();
	errno = ENOENT;
	cr_assert(ask_on(NULL));
	cr_assert_eq(errno, ENOENT);
	cr_assert(tensor_stats.low == -3 && tensor_stats.high == 3,
		  "the largest magnitude, either way");
	cr_assert(tensor_stats.least == 0.5 && fabs(tensor_stats.mean - 0.1) < 1e-15);
	cr_assert_float_eq(tensor_stats.norm, sqrt(14.25), 1e-12);
	cr_assert_eq(fake_cuda.launches, 1);
}

Test(agent_tensor_stats, tells_which_infinity_there_is)
{
	init_loaded();
	tensor[1] = -INFINITY;
	cr_assert(ask_on(NULL) && tensor_stats.low == -INFINITY && tensor_stats.high == 2);
	tensor[4] = INFINITY;
	cr_assert(ask_on(NULL) && tensor_stats.high == INFINITY && isnan(tensor_stats.mean));
	tensor[0] = NAN;
	cr_assert(ask_on(NULL) && isnan(tensor_stats.low) && isnan(tensor_stats.high));
	cr_assert_eq(tensor_stats.least, 0.5, "NaN is not in it");
}

Test(agent_tensor_stats, launches_nothing_into_a_capture)
{
	init_loaded();
	fake_cuda.capture_status = 1;
	cr_assert_not(ask_on(NULL));
	cr_assert_eq(fake_cuda.launches, 0);
}

Test(agent_tensor_stats, refuses_what_it_cannot_read)
{
	uint64_t data = (uint64_t)(uintptr_t)tensor, out = (uint64_t)(uintptr_t)&tensor_stats;

	init_loaded();
	cr_assert_not(collwatch_tensor_stats(data, 0, CW_DTYPE_FP32, NULL, out));
	cr_assert_not(collwatch_tensor_stats(data + 1, 1, CW_DTYPE_FP32, NULL, out));
	cr_assert_not(collwatch_tensor_stats(data, 1, CW_DTYPE_INT32, NULL, out));
	cr_assert_not(collwatch_tensor_stats(data, 1, -1, NULL, out));
	cr_assert_not(collwatch_tensor_stats(data, 1, CW_DTYPE__MAX, NULL, out));
	cr_assert_not(collwatch_tensor_stats(data, 1, CW_DTYPE_FP32, NULL, 0));
	cr_assert_not(collwatch_tensor_stats(data, 1, CW_DTYPE_FP32, NULL, out + 4));
	cr_assert_eq(fake_cuda.launches, 0);
}

Test(agent_tensor_stats, more_streams_than_it_has_room_for_are_served)
{
	init_loaded();
	for (unsigned i = 0; i < sizeof(streams); i++) {
		cr_assert(ask_on(&streams[i]));
		cr_assert_eq(tensor_stats.high, 3);
	}
}

Test(agent_tensor_stats, another_context_has_none)
{
	init_loaded();
	fake_cuda.current = &contexts[1];
	cr_assert_not(ask_on(NULL));
}
