/* SPDX-License-Identifier: Apache-2.0 */
/* The one line about where a process is: Python's frames by package, native ones as on a GPU. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "report/frames.h"

struct frame {
	const char *symbol, *module;
};

/* Innermost first; ends with a frame without a module. */
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

/* PyTorch 2.11, NCCL 2.28.9: a first connection, where the host waits for the others. */
Test(frames, what_nccl_does_in_a_call_is_the_call)
{
	EXPECT_POSITION("ncclAllReduce, called by c10d::ProcessGroupNCCL::allreduce_impl",
			{ "accept", "libc.so.6" }, { "socketProgressState", "libnccl.so.2" },
			{ "ncclSocketAccept", "libnccl.so.2" }, { NULL, "libnccl.so.2" },
			{ "ncclGroupEndInternal", "libnccl.so.2" },
			{ "ncclAllReduce", "libnccl.so.2" }, { "ncclAllReduce", "libcollwatch.so" },
			{ "c10d::ProcessGroupNCCL::allreduce_impl", "libtorch_cuda.so" },
			{ "c10d::ops::allreduce", "libtorch_cpu.so" });
}

Test(frames, a_wait_for_the_device_is_the_call_of_the_runtime)
{
	EXPECT_POSITION("cudaStreamSynchronize, called by at::native::_local_scalar_dense_cuda",
			{ NULL, "libcuda.so.580.159.04" },
			{ "cuStreamSynchronize", "libcuda.so.580.159.04" },
			{ "cuStreamSynchronize", "libcollwatch.so" },
			{ "cudaStreamSynchronize", "libcudart.so.13" },
			{ "at::native::_local_scalar_dense_cuda", "libtorch_cuda.so" });
}

Test(frames, a_callback_out_of_the_driver_is_where_the_program_is)
{
	EXPECT_POSITION("on_done, called by cuStreamSynchronize", { "on_done", "train" },
			{ NULL, "libcuda.so.1" }, { "cuStreamSynchronize", "libcuda.so.1" },
			{ "train", "train" });
}

Test(frames, the_caller_of_a_native_call_is_the_program_before_torch)
{
	EXPECT_POSITION("ncclAllReduce, called by Trainer::step",
			{ "ncclAllReduce", "libnccl.so.2" },
			{ "c10d::ProcessGroupNCCL::allreduce_impl", "libtorch_cuda.so" },
			{ "Trainer::step", "trainer" });
}

/* ---- Python ---- */

struct python_frame {
	const char *function, *file;
	int line;
};

/* Innermost first; ends with a frame without a file. */
static void expect_line(const struct python_frame *frames, const char *expected)
{
	json_t *list = json_array(), *doc;
	char buf[256];

	for (const struct python_frame *f = frames; f->file; f++)
		cr_assert_eq(json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "function",
								   f->function, "file", f->file,
								   "line", f->line)),
			     0);
	doc = json_pack("{s:i, s:{s:[{s:o}]}}", "pid", 7, "python", "threads", "frames", list);
	cr_assert_not_null(doc);
	cr_expect_str_eq(cw_evidence_position(doc, buf, sizeof(buf)), expected);
	json_decref(doc);
}

#define EXPECT_LINE(expected, ...)                                                                 \
	expect_line((const struct python_frame[]){ __VA_ARGS__, { NULL, NULL, 0 } }, expected)

Test(frames, the_line_comes_with_its_function_and_the_caller_behind)
{
	EXPECT_LINE("read_sample (train_loop.py:88), called by train (:505)",
		    { "read_sample", "/u/train_loop.py", 88 },
		    { "__next__", "/u/train_loop.py", 83 }, { "train", "/u/train_loop.py", 505 },
		    { "<module>", "/u/train_loop.py", 601 });
	EXPECT_LINE("read (data.py:8), called by train (train.py:50)", { "read", "/u/data.py", 8 },
		    { "train", "/u/train.py", 50 });
	EXPECT_LINE("read_sample (train_loop.py:88), called by __next__ (:83)",
		    { "read_sample", "/u/train_loop.py", 88 },
		    { "__next__", "/u/train_loop.py", 83 },
		    { "<module>", "/u/train_loop.py", 601 });
	EXPECT_LINE("<module> (train.py:3)", { "<module>", "/u/train.py", 3 });
}

#define PACKAGES "/home/u/venv/lib/python3.11/site-packages/"

Test(frames, an_installed_trainer_is_the_users_own)
{
	EXPECT_LINE("next_batch (loader.py:41), called by fit (trainer.py:7)",
		    { "wait", "/usr/lib/python3.11/threading.py", 327 },
		    { "next_batch", PACKAGES "acme_trainer/loader.py", 41 },
		    { "__call__", PACKAGES "torch/nn/modules/module.py", 1500 },
		    { "fit", PACKAGES "acme_trainer/trainer.py", 7 },
		    { "<module>", "/home/u/venv/bin/acme-train", 8 });
	EXPECT_LINE("fit (trainer.py:7)", { "_call", PACKAGES "transformers/trainer.py", 90 },
		    { "fit", "/usr/lib/python3/dist-packages/acme_trainer/trainer.py", 7 });
}

/* As tools/lib/pack_wheel.py lays it out. */
Test(frames, the_wheels_demo_has_a_line)
{
	EXPECT_LINE("read_sample (train_loop.py:88), called by train (:505)",
		    { "read_sample", PACKAGES "collwatch/lab/programs/train_loop.py", 88 },
		    { "train", PACKAGES "collwatch/lab/programs/train_loop.py", 505 });
	EXPECT_LINE("step (train.py:5)", { "hook", PACKAGES "collwatch/torch/watcher.py", 88 },
		    { "step", "/u/train.py", 5 });
}

Test(frames, a_library_is_one_wherever_it_lies)
{
	static const char *const libraries[] = {
		"/opt/deps/torch/nn/modules/module.py",
		"/opt/deps/torch/_tensor.py",
		"/opt/deps/numpy/core/multiarray.py",
		"/opt/deps/transformers/trainer.py",
		"/home/u/transformers/src/transformers/trainer.py",
		"/home/u/pytorch/torch/distributed/distributed_c10d.py",
		"/b/job.runfiles/rules_python~~pip~pip_311_torch/site-packages/torch/autograd/x.py",
		"/b/job.runfiles/pip_deps_numpy/numpy/lib/io.py",
		"/b/job.runfiles/python_3_11_x86_64/lib/python3.11/threading.py",
		"/root/.pex/installed_wheels/1f/torch-2.9-cp311-linux_x86_64.whl/torch/hub.py",
		"/root/.pex/venvs/1f/2e/lib/python3.11/site-packages/datasets/arrow.py",
		"/app/job.pex/.bootstrap/pex/pex.py",
		"/opt/conda/envs/x/lib/python3.12/selectors.py",
		"/usr/lib64/python3.9/socket.py",
		"/opt/lib/python3.13t/queue.py",
		"/opt/python311.zip/threading.py",
		"/app/deps.zip/yaml/reader.py",
		"/usr/lib/python3/dist-packages/requests/api.py",
		PACKAGES "typing_extensions.py",
		PACKAGES "nvidia/dali/pipeline.py",
		"/tmp/torchinductor_u/ab/cabc.py",
		"<frozen importlib._bootstrap>",
		"<eval_with_key>.12",
	};

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		EXPECT_LINE("step (train.py:5)", { "inner", libraries[i], 3 },
			    { "step", "/u/train.py", 5 });
}

Test(frames, a_directory_called_like_a_library_is_none)
{
	static const char *const own[] = {
		"/home/ray/x.py",
		"/home/u/torch/x.py",
		"/home/u/torch/models/x.py",
		"/data/datasets/x.py",
		"/home/u/transformers/examples/pytorch/x.py",
		"/b/job.runfiles/_main/acme/x.py",
		"/root/.pex/unzipped_pexes/1f/acme/x.py",
		"/app/job.pex/acme/x.py",
		"/home/u/python3.11/x.py",
		"/home/u/lib/python/x.py",
		PACKAGES "acme/numpy/x.py",
		PACKAGES "x.py",
		"x.py",
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		EXPECT_LINE("inner (x.py:3), called by step (train.py:5)", { "inner", own[i], 3 },
			    { "step", "/u/train.py", 5 });
}

Test(frames, without_an_own_one_the_innermost_outside_torch_and_the_standard_library)
{
	EXPECT_LINE("get (fs.py:9), called by main (launch.py:12)",
		    { "wait", "/usr/lib/python3.11/threading.py", 327 },
		    { "get", PACKAGES "fsspec/fs.py", 9 },
		    { "forward", PACKAGES "torch/nn/x.py", 4 },
		    { "main", PACKAGES "accelerate/launch.py", 12 });
	EXPECT_LINE("", { "wait", "/usr/lib/python3.11/threading.py", 327 },
		    { "run", PACKAGES "torch/distributed/run.py", 9 });
}

Test(frames, hostile_paths_end)
{
	EXPECT_LINE("f, called by f (:3)", { "f", "", 0 }, { "f", "////", 3 });
	EXPECT_LINE("f (site-packages:3)", { "f", "/site-packages", 3 });
}
