/* SPDX-License-Identifier: Apache-2.0 */
/* How compiled device code registers with the runtime: the names in nvcc's output. */
#pragma once

#include "lab/sim/cuda/host_image.h"

extern "C" {
void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *symbol, char *device_name, const char *name,
			    int thread_limit, void *tid, void *bid, void *bdim, void *gdim,
			    int *warp_size);
}

namespace lab
{

constexpr int FATBIN_WRAPPER_MAGIC = 0x466243b1;

struct FatbinWrapper {
	int magic;
	int version;
	const void *data;
	const char *file;
};

static inline void register_function(void **handle, const void *symbol, const char *name)
{
	__cudaRegisterFunction(handle, (const char *)symbol, const_cast<char *>(name), name, -1,
			       nullptr, nullptr, nullptr, nullptr, nullptr);
}

/* The reduction of a communicator with one rank (one_rank.cc). */
sim_host_kernel one_rank_kernel();
const void *one_rank_symbol();

} // namespace lab
