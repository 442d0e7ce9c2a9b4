/* SPDX-License-Identifier: Apache-2.0 */
/* The one line about where a process is, of native stacks as they were taken on a GPU. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "report/frames.h"

struct frame {
	const char *symbol, *module;
};

/* Innermost first; ends with one that has no module. */
static void expect_position(const struct frame *frames, const char *expected)
{
	json_t *list = json_array(), *doc;
	char buf[256];

	for (const struct frame *f = frames; f->module; f++)
		cr_assert_eq(json_array_append_new(list, json_pack("{s:s?, s:s}", "symbol",
								   f->symbol, "module", f->module)),
			     0);
	doc = json_pack("{s:i, s:{s:[{s:i, s:o}]}}", "pid", 7, "native", "threads", "tid", 7,
			"frames", list);
	cr_assert_not_null(doc);
	cr_expect_str_eq(cw_evidence_position(doc, buf, sizeof(buf)), expected);
	json_decref(doc);
}

#define EXPECT_POSITION(expected, ...)                                                             \
	expect_position((const struct frame[]){ __VA_ARGS__, { NULL, NULL } }, expected)

/* PyTorch 2.11, NCCL 2.28.9: a first connection, in which the host waits for the others. */
Test(frames, what_nccl_does_in_a_call_is_the_call)
{
	EXPECT_POSITION(
		"ncclAllReduce ← c10d::ProcessGroupNCCL::allreduce_impl ← c10d::ops::allreduce",
		{ "accept", "libc.so.6" }, { "socketProgressState", "libnccl.so.2" },
		{ "ncclSocketAccept", "libnccl.so.2" }, { NULL, "libnccl.so.2" },
		{ "ncclGroupEndInternal", "libnccl.so.2" }, { "ncclAllReduce", "libnccl.so.2" },
		{ "ncclAllReduce", "libcollwatch.so" },
		{ "c10d::ProcessGroupNCCL::allreduce_impl", "libtorch_cuda.so" },
		{ "c10d::ops::allreduce", "libtorch_cpu.so" });
}

Test(frames, a_wait_for_the_device_is_the_call_of_the_runtime)
{
	EXPECT_POSITION("cudaStreamSynchronize ← at::native::_local_scalar_dense_cuda",
			{ NULL, "libcuda.so.580.159.04" },
			{ "cuStreamSynchronize", "libcuda.so.580.159.04" },
			{ "cuStreamSynchronize", "libcollwatch.so" },
			{ "cudaStreamSynchronize", "libcudart.so.13" },
			{ "at::native::_local_scalar_dense_cuda", "libtorch_cuda.so" });
}

Test(frames, a_callback_out_of_the_driver_is_where_the_program_is)
{
	EXPECT_POSITION("on_done ← cuStreamSynchronize ← train", { "on_done", "train" },
			{ NULL, "libcuda.so.1" }, { "cuStreamSynchronize", "libcuda.so.1" },
			{ "train", "train" });
}
