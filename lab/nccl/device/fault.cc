/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/nccl/device/fault.h"
#include "lab/nccl/faults.h"

#include <cstdlib>

namespace lab
{

namespace
{

bool has_fault(const lab_faults *faults, lab_gpu_fault fault)
{
	static const char *const rank = getenv("RANK");

	return faults && rank &&
	       __atomic_load_n(&faults->gpu_fault, __ATOMIC_ACQUIRE) == (uint32_t)fault &&
	       faults->gpu_rank == (uint32_t)atoi(rank);
}

const lab_faults *faults()
{
	static const lab_faults *const mapped = lab_faults_map();

	return mapped;
}

} // namespace

void fault_before_kernel(Block &b)
{
	Wait w(b);

	while (has_fault(faults(), LAB_GPU_STARTS_NO_KERNEL) && w.again())
		;
}

void fault_before_slice(Block &b)
{
	static uint32_t moved;
	Wait w(b);

	if (!has_fault(faults(), LAB_GPU_STOPS)) {
		__atomic_store_n(&moved, 0, __ATOMIC_RELAXED);
		return;
	}
	if (__atomic_fetch_add(&moved, 1, __ATOMIC_RELAXED) < faults()->gpu_slices)
		return;
	while (has_fault(faults(), LAB_GPU_STOPS) && w.again())
		;
}

} // namespace lab
