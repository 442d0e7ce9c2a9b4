/* SPDX-License-Identifier: Apache-2.0 */
/* Sums tensors up without a GPU: the reference, and the kernel's own code in two orders. */
#include "record/summary.h"
#include "tests/gpu/kernel_host.h"
#include "tests/gpu/sums.h"

static void point_out(struct cw_summary_args *args, struct sums_result *ret)
{
	args->out = (uint64_t)(uintptr_t)&ret->out;
	args->first_out = (uint64_t)(uintptr_t)&ret->first;
	args->tensor_stats = 0;
}

static void point_tensor_stats(struct cw_summary_args *args, struct sums_result *ret)
{
	args->out = args->first_out = 0;
	args->tensor_stats = (uint64_t)(uintptr_t)&ret->tensor_stats;
}

static int reference(const struct sums_case *c, struct cw_summary_args *args,
		     struct sums_result *ret)
{
	point_out(args, ret);
	cw_summary_run(args);
	point_tensor_stats(args, ret);
	cw_summary_run(args);
	return 0;
}

static int kernel(const struct sums_case *c, struct cw_summary_args *args, struct sums_result *ret)
{
	point_out(args, ret);
	kernel_host_reset();
	kernel_host_run(args, c->blocks, false);
	point_tensor_stats(args, ret);
	kernel_host_run(args, c->blocks, false);
	return 0;
}

static int kernel_backwards(const struct sums_case *c, struct cw_summary_args *args,
			    struct sums_result *ret)
{
	point_out(args, ret);
	kernel_host_reset();
	kernel_host_run(args, c->blocks, true);
	point_tensor_stats(args, ret);
	kernel_host_run(args, c->blocks, true);
	return 0;
}

int main(void)
{
	static const sums_engine_fn engines[] = { reference, kernel, kernel_backwards };

	return sums_serve(engines, sizeof(engines) / sizeof(engines[0]));
}
