/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's calls to the CUDA driver. Every test runs in a process of its own. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/hooks/profiler_abi.h"
#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "tests/support/agent/cuda/fake_cuda.h"

extern const struct cw_nccl_profiler_v5 ncclProfiler_v5;

static char contexts[2];
static char handles[4];
static ncclResult_t answer;
static uint32_t reached_inside, completed_inside;
static uint16_t slot_inside;

static const struct cw_rec_op *last(int c)
{
	const struct cw_rec_comm *rc = &cw_record.comms[c];

	return &rc->ops[(rc->ring_ticket - 1) % CW_REC_COMM_OPS];
}

static ncclResult_t look(void)
{
	slot_inside = last(0)->progress_slot;
	if (slot_inside != CW_REC_NO_SLOT) {
		reached_inside = cw_record.progress[slot_inside].reached;
		completed_inside = cw_record.progress[slot_inside].completed;
	}
	return answer;
}

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	*comm = (ncclComm_t)&handles[(unsigned char)id.internal[0]];
	return answer;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	return cw_tls.group_depth ? ncclSuccess : look();
}

static ncclResult_t fake_group_start(void)
{
	return ncclSuccess;
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclGroupStart = fake_group_start,
	.ncclGroupEnd = look,
	.ncclCommInitRank = fake_init,
};

static ncclComm_t init(unsigned n)
{
	ncclUniqueId id = { { (char)n } };
	ncclComm_t comm;

	fake_cuda.stream_owner = &contexts[0];
	fake_cuda.current = &contexts[0];
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, 4, id, 0);
	return comm;
}

static void call(ncclComm_t comm, uintptr_t stream)
{
	(void)cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, 8, CW_DTYPE_FP32, CW_REDOP_SUM, comm,
				    (cudaStream_t)stream);
}

Test(agent_progress, registers_the_pages_once_and_out_of_captures_way)
{
	fake_cuda.capture_mode = 0;
	(void)init(0);
	(void)init(1);
	cr_assert_eq(fake_cuda.registrations, 1);
	cr_assert(fake_cuda.was_relaxed);
	cr_assert_eq(fake_cuda.capture_mode, 0, "the thread's mode is restored");
	cr_assert(cw_record.header->has & CW_REC_HAS_PROGRESS);
	cr_assert_eq(cw_record.header->cuda_driver_version, 13000);
}

static int device_of_next;

static ncclResult_t fake_cu_device(const ncclComm_t comm, int *device)
{
	*device = device_of_next;
	return ncclSuccess;
}

static void init_on(int device)
{
	static struct cw_real with_devices;
	ncclUniqueId id = { { 0 } };
	ncclComm_t comm;

	with_devices = fake;
	with_devices.ncclCommCuDevice = fake_cu_device;
	device_of_next = device;
	fake_cuda.stream_owner = fake_cuda.current = &contexts[0];
	(void)cw_impl_ncclCommInitRank(&with_devices, NULL, &comm, 4, id, 0);
}

Test(agent_progress, tells_of_what_model_its_devices_are)
{
	char(*models)[CW_REC_MODEL_BYTES];
	char longest[100];

	fake_cuda.model = "NVIDIA H100 80GB HBM3";
	init_on(3);
	models = cw_record.header->device_models;
	cr_assert_str_eq(models[3], "NVIDIA H100 80GB HBM3");
	cr_assert_eq(*models[0], '\0', "no communicator is on it");
	init_on(3);
	cr_assert_eq(fake_cuda.names, 1, "it is known");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	fake_cuda.model = longest;
	init_on(7);
	cr_assert_eq(strlen(models[7]), CW_REC_MODEL_BYTES - 1);
}

Test(agent_progress, of_a_device_that_has_no_place_or_no_name_nothing_is_told)
{
	init_on(1);
	cr_assert_eq(*cw_record.header->device_models[1], '\0');
	fake_cuda.model = "NVIDIA H100 80GB HBM3";
	init_on(CW_REC_DEVICES);
	init_on(-1);
	for (unsigned i = 0; i < CW_REC_DEVICES; i++)
		cr_assert_eq(*cw_record.header->device_models[i], '\0', "%u", i);
	cr_assert_eq(fake_cuda.names, 1);
}

static pthread_t second;

static void *init_second(void *arg)
{
	(void)arg;
	(void)init(1);
	return NULL;
}

/* Long enough for a thread that does not wait to finish. */
static void start_second(void)
{
	struct timespec until;

	cr_assert_eq(pthread_create(&second, NULL, init_second, NULL), 0);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 50 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_timedjoin_np(second, NULL, &until) == 0)
		second = 0;
}

Test(agent_progress, a_thread_that_comes_while_pages_are_registered_waits)
{
	fake_cuda.registering = start_second;
	(void)init(0);
	if (second)
		(void)pthread_join(second, NULL);
	cr_assert_eq(fake_cuda.registrations, 1);
	for (int c = 0; c < 2; c++)
		cr_assert_not(cw_record.comms[c].flags & CW_REC_COMM_PROGRESS_LOST, "comm %d", c);
}

/* Its calls come from threads of the driver, too, where CUDA must not be called. */
Test(agent_progress, asks_cuda_nothing_for_a_communicator_of_the_plugin)
{
	const struct cw_nccl_event event = {
		.type = CW_NCCL_EVENT_COLL_API,
		.coll_api = { .func = "AllReduce", .count = 8, .datatype = "ncclFloat32" },
	};
	void *context = NULL, *handle;
	int mask;

	call(init(0), 1);
	cr_assert_eq(ncclProfiler_v5.init(&context, 77, &mask, NULL, 1, 4, 0, NULL), 0);
	cr_assert_not_null(context);
	fake_cuda.capture_status = 1;
	cr_assert_eq(ncclProfiler_v5.start_event(context, &handle, &event), 0);
	cr_assert_eq(cw_record.comms[1].ring_ticket, 1);
	cr_assert_not(last(1)->flags & CW_OPF_CAPTURED);
	cr_assert_not(cw_record.comms[1].flags & CW_REC_COMM_UNCOUNTED);
}

Test(agent_progress, writes_reached_before_and_completed_after)
{
	ncclComm_t comm = init(0);

	call(comm, 1);
	cr_assert_eq(reached_inside, 2, "init was op 1");
	cr_assert_eq(completed_inside, 1, "nothing after the slot's base");
	cr_assert_eq(cw_record.progress[slot_inside].completed, 2);
	cr_assert_eq(cw_record.progress_info[slot_inside].base, 1);
	cr_assert_eq(cw_record.progress_info[slot_inside].stream, 1);
	cr_assert_eq(cw_record.progress_info[slot_inside].comm_plus_1, 1);
}

Test(agent_progress, keeps_streams_and_communicators_apart)
{
	ncclComm_t a = init(0), b = init(1);
	uint16_t first;

	call(a, 1);
	first = last(0)->progress_slot;
	call(a, 2);
	cr_assert_neq(last(0)->progress_slot, first);
	call(b, 1);
	cr_assert_neq(last(1)->progress_slot, first);
	call(a, 1);
	cr_assert_eq(last(0)->progress_slot, first);
}

Test(agent_progress, writes_one_pair_around_a_group)
{
	ncclComm_t comm = init(0);
	unsigned before = fake_cuda.writes;

	(void)cw_impl_ncclGroupStart(&fake, NULL);
	call(comm, 1);
	call(comm, 1);
	call(comm, 1);
	cr_assert_eq(fake_cuda.writes, before, "nothing is on the stream before the end");
	(void)cw_impl_ncclGroupEnd(&fake, NULL);
	cr_assert_eq(fake_cuda.writes, before + 2);
	cr_assert_eq(reached_inside, 4);
	cr_assert_eq(cw_record.progress[slot_inside].completed, 4);
}

Test(agent_progress, makes_the_communicators_context_current_and_puts_it_back)
{
	ncclComm_t comm = init(0);

	fake_cuda.current = &contexts[1];
	call(comm, 1);
	cr_assert_not(fake_cuda.was_wrong);
	cr_assert_eq(fake_cuda.current, &contexts[1]);
}

Test(agent_progress, leaves_a_capturing_stream_alone)
{
	ncclComm_t comm = init(0);

	fake_cuda.capture_status = 1;
	call(comm, 1);
	cr_assert_eq(fake_cuda.writes, 0);
	cr_assert(last(0)->flags & CW_OPF_CAPTURED);
	cr_assert_eq(last(0)->progress_slot, CW_REC_NO_SLOT);
	fake_cuda.capture_status = 0;
	fake_cuda.capture_result = 906; /* the legacy stream while another one captures */
	call(comm, 0);
	cr_assert_eq(fake_cuda.writes, 0);
	cr_assert_eq(last(0)->progress_slot, CW_REC_NO_SLOT);
	cr_assert_not(last(0)->flags & CW_OPF_CAPTURED);
}

Test(agent_progress, says_unknown_after_an_error_and_is_quiet)
{
	ncclComm_t comm = init(0);

	call(comm, 1);
	fake_cuda.write_result = 700;
	call(comm, 1);
	cr_assert_eq(last(0)->progress_slot, CW_REC_NO_SLOT);
	cr_assert(cw_record.comms[0].flags & CW_REC_COMM_PROGRESS_LOST);
	fake_cuda.write_result = 0;
	call(comm, 1);
	cr_assert_eq(fake_cuda.writes, 2, "only the first call's");
	cr_assert_eq(cw_record.comms[0].coll_returned, 3, "numbers go on");
}

Test(agent_progress, does_not_know_about_calls_in_progress)
{
	ncclComm_t comm = init(0);

	answer = ncclInProgress;
	call(comm, 1);
	cr_assert_eq(last(0)->progress_slot, CW_REC_NO_SLOT);
	cr_assert(last(0)->flags & CW_OPF_IN_PROGRESS);
	cr_assert_eq(fake_cuda.writes, 1, "reached, never completed");
	answer = ncclInProgress;
	comm = init(1); /* a non-blocking communicator gets no writes at all */
	call(comm, 1);
	cr_assert_eq(fake_cuda.writes, 1);
}

Test(agent_progress, says_unknown_when_slots_run_out)
{
	ncclComm_t comm = init(0);

	for (uintptr_t stream = 1; stream <= CW_REC_PROGRESS_SLOTS; stream++) {
		call(comm, stream);
		cr_assert_neq(last(0)->progress_slot, CW_REC_NO_SLOT);
	}
	call(comm, 100000);
	cr_assert_eq(last(0)->progress_slot, CW_REC_NO_SLOT);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_PROGRESS], 1);
	call(comm, 1);
	cr_assert_eq(last(0)->progress_slot, 0, "who has one keeps it");
}
