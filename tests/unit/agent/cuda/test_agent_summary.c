/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the agent looks at tensors, and which ones it picks. Every test runs in a process of
 * its own.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/cuda/kernels.h"
#include "agent/cuda/summary.h"
#include "agent/cuda/tensor.h"
#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "record/summary_taken.h"
#include "tests/support/agent/cuda/fake_cuda.h"

#define COUNT 64

static char contexts[2];
static char handles[4];
static float in[4 * COUNT], out[4 * COUNT];
static ncclResult_t answer;

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	*comm = (ncclComm_t)&handles[(unsigned char)id.internal[0]];
	return ncclSuccess;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	if (!cw_tls.group_depth && answer == ncclSuccess)
		memset(r, 0, n * sizeof(float));
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

static ncclComm_t init(const char *policy)
{
	ncclUniqueId id = { { 0 } };
	ncclComm_t comm;

	if (!cw_kernel_image_bytes)
		cr_skip_test("built without nvcc and clang: there is no kernel");
	(void)setenv("COLLWATCH_SUMMARY", policy, 1);
	fake_cuda.stream_owner = &contexts[0];
	fake_cuda.current = &contexts[0];
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, 4, id, 1);
	return comm;
}

static void call(ncclComm_t comm)
{
	(void)cw_impl_ncclAllReduce(&fake, NULL, in, out, COUNT, CW_DTYPE_FP32, CW_REDOP_SUM, comm,
				    NULL);
}

static const struct cw_rec_summary *summary(unsigned number)
{
	return &cw_record.summaries[CW_REC_SUMMARY_FIRSTS + number % CW_REC_SUMMARY_RING];
}

static const struct cw_rec_op *last(void)
{
	const struct cw_rec_comm *rc = &cw_record.comms[0];

	return &rc->ops[(rc->ring_ticket - 1) % CW_REC_COMM_OPS];
}

Test(agent_summary, off_loads_and_launches_nothing)
{
	call(init("off"));
	cr_assert(fake_cuda.modules == 0 && fake_cuda.launches == 0);
	cr_assert_not(cw_record.header->has & CW_REC_HAS_SUMMARIES);
}

Test(agent_summary, unknown_policy_is_off)
{
	call(init("all"));
	cr_assert_eq(fake_cuda.modules, 0);
}

Test(agent_summary, full_tells_what_goes_in_and_what_comes_out)
{
	ncclComm_t comm = init("full");

	for (unsigned i = 0; i < COUNT; i++)
		in[i] = (float)i;
	call(comm);
	cr_assert(cw_record.header->has & CW_REC_HAS_SUMMARIES);
	cr_assert_eq(fake_cuda.launches, 2);
	cr_assert_not(fake_cuda.was_wrong, "launched outside of the stream's context");
	cr_assert_eq(last()->summary_id, CW_REC_SUMMARY_FIRSTS + 1 + 1);
	cr_assert(summary(1)->publish == 1 && !summary(1)->is_output);
	cr_assert(summary(1)->op_index == last()->op_index && summary(1)->seq == 1);
	cr_assert(summary(1)->elements == COUNT && summary(1)->abs_max == COUNT - 1);
	cr_assert(summary(1)->kind == CW_OP_ALL_REDUCE && summary(1)->dtype == CW_DTYPE_FP32);
	cr_assert(summary(2)->is_output && summary(2)->zeros == COUNT);
	cr_assert_eq(cw_record.summaries[0].publish, 0, "nothing wrong was fed");
}

Test(agent_summary, says_in_which_step_it_was)
{
	ncclComm_t comm = init("full");

	call(comm);
	cr_assert_eq(summary(1)->step_plus_1, 0, "the program has marked no step");
	cr_assert_eq(summary(1)->stride_log2_plus_1, 1, "all of it was looked at");
	collwatch_mark_step(0);
	call(comm);
	collwatch_mark_step(41);
	call(comm);
	cr_assert_eq(summary(3)->step_plus_1, 1);
	cr_assert_eq(summary(6)->step_plus_1, 42);
}

Test(agent_summary, counts_what_is_at_the_limit_or_denormal)
{
	ncclComm_t comm = init("full");

	for (unsigned i = 0; i < COUNT / 4; i++) {
		in[i] = FLT_MAX;
		in[COUNT - 1 - i] = FLT_MIN / 2;
	}
	call(comm);
	cr_assert_eq(summary(1)->at_limit, 0x3e80, "a quarter");
	cr_assert_eq(summary(1)->denormal, 0x3e80);
	cr_assert_eq(summary(2)->at_limit, 0, "of the output none");
}

Test(agent_summary, first_infinity_fed_in_is_kept_whatever_comes_after_it)
{
	ncclComm_t comm = init("full");

	call(comm);
	in[3] = INFINITY;
	call(comm);
	for (unsigned i = 0; i < 2 * CW_REC_SUMMARY_RING; i++)
		call(comm);
	cr_assert_eq(cw_record.summaries[0].infs, 1);
	cr_assert_eq(cw_record.summaries[0].seq, 2);
	cr_assert_not(cw_record.summaries[0].is_output);
}

Test(agent_summary, nothing_is_put_into_a_capture)
{
	ncclComm_t comm = init("full");

	fake_cuda.capture_status = 1;
	call(comm);
	fake_cuda.capture_status = 0;
	fake_cuda.capture_result = 900;
	call(comm);
	cr_assert_eq(fake_cuda.launches, 0);
	cr_assert_eq(last()->summary_id, 0);
}

Test(agent_summary, entry_of_a_kernel_that_has_not_run_is_not_given_away)
{
	ncclComm_t comm = init("full");

	fake_cuda.is_stuck = true;
	for (unsigned i = 0; i < 2 * CW_REC_SUMMARY_RING; i++)
		call(comm);
	cr_assert_eq(fake_cuda.launches, CW_REC_SUMMARY_RING);
	cr_assert_gt(cw_record.header->drops[CW_REC_DROP_SUMMARIES], 0);
}

Test(agent_summary, one_kernel_that_never_runs_does_not_end_the_others)
{
	ncclComm_t comm = init("full");

	fake_cuda.is_stuck = true;
	call(comm);
	fake_cuda.is_stuck = false;
	for (unsigned i = 0; i < CW_REC_SUMMARY_RING; i++)
		call(comm);
	cr_assert_eq(fake_cuda.launches, 2 * (CW_REC_SUMMARY_RING + 1));
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_SUMMARIES], 0);
	cr_assert_eq(summary(1)->publish, 0, "it still waits");
	cr_assert_gt(summary(3)->publish, CW_REC_SUMMARY_RING);
}

/* ---- a reader of all ---- */

static char dir[64];
static struct cw_summary_taken *taken;
static bool last_is_over;

static void no_dir(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

/* The reader's file has `bytes` bytes when the communicator becomes ready. */
static ncclComm_t init_read(size_t bytes)
{
	char path[128];
	int fd;

	snprintf(dir, sizeof(dir), "/tmp/test_complete.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	(void)setenv("COLLWATCH_COMPLETE", dir, 1);
	cw_agent_start();
	snprintf(path, sizeof(path), "%s/" CW_SUMMARY_TAKEN_NAME, dir, cw_record.header->pid,
		 (unsigned long long)cw_record.header->created_wall_ns);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0, "%s", path);
	taken = mmap(NULL, sizeof(*taken), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq((void *)taken, MAP_FAILED);
	close(fd);
	if (bytes == sizeof(*taken))
		taken->magic = CW_SUMMARY_TAKEN_MAGIC;
	return init("full");
}

Test(agent_summary, what_has_been_read_is_overwritten, .fini = no_dir)
{
	ncclComm_t comm = init_read(sizeof(*taken));

	cr_assert(cw_record.header->has & CW_REC_HAS_READER);
	memset(taken->newest, 0xff, sizeof(taken->newest));
	for (unsigned i = 0; i < CW_REC_SUMMARY_RING; i++)
		call(comm);
	cr_assert_eq(fake_cuda.launches, 2 * CW_REC_SUMMARY_RING);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_SUMMARIES], 0);
}

static void *read_all(void *arg)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	while (!__atomic_load_n(&last_is_over, __ATOMIC_ACQUIRE)) {
		for (unsigned i = 0; i < CW_REC_SUMMARY_RING; i++)
			__atomic_store_n(&taken->newest[i], summary(i)->publish, __ATOMIC_RELEASE);
		(void)nanosleep(&pause, NULL);
	}
	return arg;
}

Test(agent_summary, what_has_not_been_read_is_waited_for, .fini = no_dir)
{
	ncclComm_t comm = init_read(sizeof(*taken));
	pthread_t reader;

	cr_assert_eq(pthread_create(&reader, NULL, read_all, NULL), 0);
	for (unsigned i = 0; i < 4 * CW_REC_SUMMARY_RING; i++)
		call(comm);
	__atomic_store_n(&last_is_over, true, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_join(reader, NULL), 0);
	cr_assert_eq(fake_cuda.launches, 8 * CW_REC_SUMMARY_RING);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_SUMMARIES], 0);
	cr_assert(cw_agent_is_armed());
}

Test(agent_summary, a_file_that_is_no_readers_is_not_waited_for, .fini = no_dir)
{
	call(init_read(sizeof(*taken) - 1));
	cr_assert_not(cw_record.header->has & CW_REC_HAS_READER);
	cr_assert_eq(fake_cuda.launches, 2);
}

Test(agent_summary, refused_launch_ends_summaries_and_not_the_call)
{
	ncclComm_t comm = init("full");

	fake_cuda.launch_result = 719;
	call(comm);
	fake_cuda.launch_result = 0;
	call(comm);
	cr_assert_eq(fake_cuda.launches, 0);
	cr_assert(last()->flags & CW_OPF_RETURNED);
}

Test(agent_summary, memory_that_is_not_the_devices_is_not_read)
{
	ncclComm_t comm = init("full");

	fake_cuda.range_base = (uintptr_t)in;
	fake_cuda.range_bytes = COUNT / 2 * sizeof(float);
	call(comm);
	cr_assert_eq(fake_cuda.launches, 1, "of the output nothing is known");
	cr_assert(summary(1)->elements == COUNT / 2 && summary(1)->offered == COUNT);
}

Test(agent_summary, output_of_a_call_that_failed_is_not_looked_at_and_of_a_queued_one_later)
{
	ncclComm_t comm = init("full");

	answer = ncclInvalidUsage;
	call(comm);
	cr_assert_eq(fake_cuda.launches, 1);
	answer = ncclSuccess;
	(void)cw_impl_ncclGroupStart(&fake, NULL);
	call(comm);
	cr_assert_eq(fake_cuda.launches, 1);
	(void)cw_impl_ncclGroupEnd(&fake, NULL);
	cr_assert_eq(fake_cuda.launches, 3);
	cr_assert(summary(2)->seq == 1 && !summary(2)->is_output);
	cr_assert(summary(3)->seq == 1 && summary(3)->is_output);
}

/* ---- which memory ---- */

static uint64_t input_of(unsigned kind, int rank)
{
	struct cw_op_desc desc = { .kind = (uint8_t)kind,
				   .dtype = CW_DTYPE_FP32,
				   .root_or_peer = 2,
				   .count = 10,
				   .send = in,
				   .recv = out };
	struct cw_tensor t;

	return cw_tensor_input(&desc, 4, rank, &t) ? t.data == in ? t.elements : 1 : 0;
}

static uint64_t output_of(unsigned kind, int rank)
{
	struct cw_op_desc desc = { .kind = (uint8_t)kind,
				   .dtype = CW_DTYPE_FP32,
				   .root_or_peer = 2,
				   .count = 10,
				   .send = in,
				   .recv = out };
	struct cw_tensor t;

	return cw_tensor_output(&desc, 4, rank, &t) ? t.data == out ? t.elements : 1 : 0;
}

Test(agent_summary, sizes_of_buffers_are_those_of_the_kind)
{
	static const struct {
		unsigned kind;
		uint64_t in_root, in_other, out_root, out_other;
	} rows[] = {
		{ CW_OP_ALL_REDUCE, 10, 10, 10, 10 },
		{ CW_OP_BROADCAST, 10, 0, 10, 10 },
		{ CW_OP_REDUCE, 10, 10, 10, 0 },
		{ CW_OP_ALL_GATHER, 10, 10, 40, 40 },
		{ CW_OP_REDUCE_SCATTER, 40, 40, 10, 10 },
		{ CW_OP_ALL_TO_ALL, 40, 40, 40, 40 },
		{ CW_OP_GATHER, 10, 10, 40, 0 },
		{ CW_OP_SCATTER, 40, 0, 10, 10 },
		{ CW_OP_RECV, 0, 0, 10, 10 },
		{ CW_OP_SEND, 10, 10, 0, 0 },
		{ CW_OP_SIGNAL, 0, 0, 0, 0 },
		{ CW_OP_WAIT_SIGNAL, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned kind = rows[i].kind;

		cr_assert_eq(input_of(kind, 2), rows[i].in_root, "%s", cw_op_kind_name(kind));
		cr_assert_eq(input_of(kind, 1), rows[i].in_other, "%s", cw_op_kind_name(kind));
		if (kind == CW_OP_SEND)
			continue; /* it has no recv */
		cr_assert_eq(output_of(kind, 2), rows[i].out_root, "%s", cw_op_kind_name(kind));
		cr_assert_eq(output_of(kind, 1), rows[i].out_other, "%s", cw_op_kind_name(kind));
	}
}

Test(agent_summary, sizes_that_overflow_are_refused)
{
	struct cw_op_desc desc = { .kind = CW_OP_ALL_TO_ALL,
				   .dtype = CW_DTYPE_FP64,
				   .count = UINT64_MAX / 16,
				   .send = in };
	struct cw_tensor t;

	cr_assert_not(cw_tensor_input(&desc, 4, 0, &t));
	desc.count = 1;
	desc.dtype = CW_DTYPE__MAX;
	cr_assert_not(cw_tensor_input(&desc, 4, 0, &t));
	desc.dtype = CW_DTYPE_FP64;
	cr_assert_not(cw_tensor_input(&desc, 0, 0, &t), "ranks not known yet");
}
