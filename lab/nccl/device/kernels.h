/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that NCCL's host code launches, by name. lab/real-nccl generates them for
 * each version.
 */
#pragma once

struct lab_kernel_name {
	const char *name;
	const void *symbol; /* the address that host code launches */
};

extern const struct lab_kernel_name lab_kernel_names[];
extern const unsigned int lab_kernel_count;
