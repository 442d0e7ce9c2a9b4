/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/kernels.h"

#include "agent/base/log.h"
#include "agent/cuda/cuda_driver.h"
#include "agent/record/record.h"
#include "record/summary_math.h"

#define WORDS_PER_THREAD 4 /* a thread with fewer words costs more than it saves */
/*
 * For at most this many words we use one block. Several blocks would cost more time than they save,
 * because it takes 2.5 us on an H200 to join their results.
 */
#define ONE_BLOCK_WORDS 4096

static struct cw_kernels table[CW_REC_SUMMARY_FIRSTS];
static uint32_t used;

/*
 * Finds the entry of a context. We try to load the kernels once per context, so the entry may have
 * kernels that failed to load or are still being loaded.
 */
static struct cw_kernels *find(const void *context)
{
	uint32_t n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n && i < CW_REC_SUMMARY_FIRSTS; i++)
		if (__atomic_load_n(&table[i].context, __ATOMIC_ACQUIRE) == context)
			return &table[i];
	return NULL;
}

struct cw_kernels *cw_kernels_of(const void *context)
{
	struct cw_kernels *k = find(context);

	return k && __atomic_load_n(&k->is_ready, __ATOMIC_ACQUIRE) ? k : NULL;
}

static bool has_functions(void)
{
	return cw_kernel_image_bytes && cw_cuda.module_load && cw_cuda.module_function &&
	       cw_cuda.launch && cw_cuda.address_range && cw_cuda.stream_is_capturing &&
	       cw_cuda.exchange_capture_mode;
}

/*
 * Loads the kernels. The driver may load lazily, so we also request each function, which forces the
 * load.
 */
static bool load(struct cw_kernels *k)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUmodule module;
	CUresult r;

	(void)cw_cuda.exchange_capture_mode(&mode);
	r = cw_cuda.module_load(&module, cw_kernel_image);
	if (r == CUDA_SUCCESS)
		r = cw_cuda.module_function(&k->summary, module, "cw_summary");
	if (r == CUDA_SUCCESS)
		r = cw_cuda.module_function(&k->stamp, module, "cw_stamp");
	(void)cw_cuda.exchange_capture_mode(&mode);
	if (r != CUDA_SUCCESS)
		cw_log("the driver does not take the kernels for tensor summaries: error %d", r);
	return r == CUDA_SUCCESS;
}

void cw_kernels_load(CUcontext context, uint64_t pages)
{
	struct cw_kernels *k;
	uint32_t i;

	if (!has_functions())
		return;
	k = find(context);
	if (k) {
		if (pages)
			k->pages = pages;
		return;
	}
	i = __atomic_fetch_add(&used, 1, __ATOMIC_ACQ_REL);
	if (i >= CW_REC_SUMMARY_FIRSTS) {
		__atomic_store_n(&used, CW_REC_SUMMARY_FIRSTS, __ATOMIC_RELEASE);
		return;
	}
	k = &table[i];
	k->pages = pages;
	k->ordinal = i;
	__atomic_store_n(&k->context, context, __ATOMIC_RELEASE);
	if (load(k))
		__atomic_store_n(&k->is_ready, 1, __ATOMIC_RELEASE);
}

bool cw_kernels_may_launch(CUstream stream)
{
	CUstreamCaptureStatus status;

	return cw_cuda.stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool launch(CUfunction fn, uint32_t blocks, uint32_t threads, CUstream stream, void *param)
{
	void *params[] = { param };

	return cw_cuda.launch(fn, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL) ==
	       CUDA_SUCCESS;
}

bool cw_kernels_launch(struct cw_kernels *k, CUfunction fn, uint32_t blocks, uint32_t threads,
		       CUstream stream, void *param)
{
	if (launch(fn, blocks, threads, stream, param))
		return true;
	__atomic_store_n(&k->is_ready, 0, __ATOMIC_RELEASE);
	return false;
}

static uint32_t blocks_for(const struct cw_summary_args *args)
{
	uint64_t words = cw_sum_chosen(args);
	uint64_t blocks = words / (CW_SUM_THREADS * WORDS_PER_THREAD) + 1;

	if (words <= ONE_BLOCK_WORDS)
		return 1;
	return blocks < CW_SUM_BLOCKS ? (uint32_t)blocks : CW_SUM_BLOCKS;
}

bool cw_kernels_sum(struct cw_kernels *k, CUstream stream, struct cw_summary_args *args)
{
	return cw_kernels_launch(k, k->summary, blocks_for(args), CW_SUM_THREADS, stream, args);
}

bool cw_kernels_sum_for_program(struct cw_kernels *k, CUstream stream, struct cw_summary_args *args,
				bool is_alone)
{
	return launch(k->summary, is_alone ? 1 : blocks_for(args), CW_SUM_THREADS, stream, args);
}
