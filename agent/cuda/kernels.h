/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own kernels (summary_kernel.cu) in the contexts of this process. Loaded when a
 * communicator becomes ready, never later: loading behind a kernel of NCCL that waits for its peers
 * can block for good.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/cuda_abi.h"

/* What was built in: nothing where neither nvcc nor clang was there. */
extern const unsigned char cw_kernel_image[];
extern const unsigned int cw_kernel_image_bytes;

struct cw_kernels {
	CUcontext context;
	CUfunction summary, stamp;
	uint64_t pages;    /* the record's device pages, as an address of the device */
	uint32_t ordinal;  /* below CW_REC_SUMMARY_FIRSTS */
	uint32_t is_ready; /* atomic; 0 = being set up, or given up after an error */
};

/*
 * Loads the kernels into a context that is current, once; pages: address there of the record's
 * device pages, 0 = not known yet. Calls CUDA; any thread, does not wait for another.
 */
void cw_kernels_load(CUcontext context, uint64_t pages);

/* NULL = there are none in this context. Any thread, lock-free. */
struct cw_kernels *cw_kernels_of(const void *context);

/*
 * Whether something may be put onto the stream: not while it is captured, and not when that cannot
 * be told. The stream's context is current.
 */
bool cw_kernels_may_launch(CUstream stream);

/* Launches the summary of a tensor, in as many blocks as it is worth. False as below. */
struct cw_summary_args;
bool cw_kernels_sum(struct cw_kernels *k, CUstream stream, struct cw_summary_args *args);
/*
 * The same on a stream that a program names; is_alone: in one block, which needs no scratch area.
 * False: nothing was launched, which says nothing of the context.
 */
bool cw_kernels_sum_for_program(struct cw_kernels *k, CUstream stream, struct cw_summary_args *args,
				bool is_alone);

/* Launches fn with one parameter. On an error nothing is launched in that context any more. */
bool cw_kernels_launch(struct cw_kernels *k, CUfunction fn, uint32_t blocks, uint32_t threads,
		       CUstream stream, void *param);
