/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own kernels (summary_kernel.cu) in the contexts of this process. We load them when a
 * communicator becomes ready, and never later. A later load could block for good behind an NCCL
 * kernel that waits for its peers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/cuda_abi.h"

/* The kernels that the build put into the agent; empty if the build had neither nvcc nor clang. */
extern const unsigned char cw_kernel_image[];
extern const unsigned int cw_kernel_image_bytes;

struct cw_kernels {
	CUcontext context;
	CUfunction summary, stamp;
	uint64_t pages;   /* the device's address of the record's device pages */
	uint32_t ordinal; /* below CW_REC_SUMMARY_FIRSTS */
	/* Atomic; 0 = setup is under way, or an error has disabled the kernels. */
	uint32_t is_ready;
};

/*
 * Loads the kernels into the current context, once. pages: the context's address of the record's
 * device pages; 0 = not known yet. Calls CUDA. Any thread; does not wait for another thread.
 */
void cw_kernels_load(CUcontext context, uint64_t pages);

/* Finds the kernels of a context; NULL = the context has none. Any thread, lock-free. */
struct cw_kernels *cw_kernels_of(const void *context);

/*
 * Returns whether we may launch on the stream: the driver can tell whether the stream is in a
 * capture, and it is not. The stream's context must be current.
 */
bool cw_kernels_may_launch(CUstream stream);

/*
 * Launches the summary of a tensor, with a number of blocks that fits the tensor's size. After an
 * error returns false, and we launch nothing in that context any more.
 */
struct cw_summary_args;
bool cw_kernels_sum(struct cw_kernels *k, CUstream stream, struct cw_summary_args *args);
/*
 * Launches a summary on a stream of the program's choice. is_alone: use one block, which needs no
 * scratch area. Returns false if we launched nothing; unlike with cw_kernels_sum(), the context may
 * still be usable.
 */
bool cw_kernels_sum_for_program(struct cw_kernels *k, CUstream stream, struct cw_summary_args *args,
				bool is_alone);

/*
 * Launches fn with one parameter. After an error returns false, and we launch nothing in that
 * context any more.
 */
bool cw_kernels_launch(struct cw_kernels *k, CUfunction fn, uint32_t blocks, uint32_t threads,
		       CUstream stream, void *param);
