/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of NCCL's profiler interface that offers only one version, VERSION, and implements it
 * with the library LAB_PROFILER. So a newer NCCL talks to the agent as an older one does, through
 * NCCL's own conversion.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/hooks/profiler_abi.h"

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME JOIN(ncclProfiler_v, VERSION)

/* The structure has a name and five functions in all versions. */
extern __attribute__((visibility("default"))) struct cw_nccl_profiler_v5 NAME;
struct cw_nccl_profiler_v5 NAME;

__attribute__((constructor)) static void take_from_the_other(void)
{
	const char *path = getenv("LAB_PROFILER");
	void *lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	const void *its = lib ? dlsym(lib, QUOTE(NAME)) : NULL;

	if (!its) {
		fprintf(stderr, "LAB_PROFILER=%s has no " QUOTE(NAME) "\n", path ? path : "");
		abort();
	}
	memcpy(&NAME, its, sizeof(NAME));
}
