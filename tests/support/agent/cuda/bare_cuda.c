/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/agent/cuda/bare_cuda.h"

#include <dlfcn.h>
#include <stddef.h>

int cuGraphLaunch(void *exec, void *stream);

int cuGraphLaunch(void *exec, void *stream)
{
	return exec && stream ? 0 : 1;
}

const char *bare_cuda_path(void)
{
	Dl_info info;

	return dladdr((void *)bare_cuda_path, &info) ? info.dli_fname : NULL;
}
