/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A communicator with one rank copies; only a scaling operator needs a kernel
 * (src/device/onerank.cu). The types are those with a kernel in that file when a host compiler
 * compiles it.
 */
#include "lab/nccl/device/reducer.h"
#include "lab/nccl/device/registration.h"

#include "alloc.h"
#include "collectives.h"
#include <cuda_runtime.h>

namespace lab
{

namespace
{

struct Params {
	void *dst;
	const void *src;
	size_t count;
	uint64_t arg;
	int type;
	bool is_arg_ptr;
};

void run(const void *param, unsigned int block, unsigned int blocks)
{
	const Params *p = (const Params *)param;
	const Reducer *r = reducer_of(ncclDevPreMulSum, p->type);

	r->before(p->dst, p->src, p->count,
		  p->is_arg_ptr ? r->load_arg((const void *)p->arg) : p->arg);
}

void one_rank_scale(Params)
{
}

} // namespace

sim_host_kernel one_rank_kernel()
{
	return { "one_rank_scale", sizeof(Params), run };
}

const void *one_rank_symbol()
{
	return (const void *)one_rank_scale;
}

} // namespace lab

ncclResult_t ncclLaunchOneRank(void *dst, void const *src, size_t count, struct ncclDevRedOpFull op,
			       ncclDataType_t type, cudaStream_t stream)
{
	lab::Params params = { dst, src, count, op.scalarArg, type, op.scalarArgIsPtr };
	void *args[] = { &params };

	if (op.op != ncclDevPreMulSum) {
		if (dst != src)
			NCCLCHECK(ncclCudaMemcpyAsync((char *)dst, (char *)src,
						      count * ncclTypeSize(type), stream));
		return ncclSuccess;
	}
	if (type == ncclFloat8e4m3 || type == ncclFloat8e5m2 ||
	    !lab::reducer_of(ncclDevPreMulSum, type))
		return ncclInvalidArgument;
	CUDACHECK(cudaLaunchKernel(lab::one_rank_symbol(), dim3(1), dim3(1), args, 0, stream));
	return ncclSuccess;
}
