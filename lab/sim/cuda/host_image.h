/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code of the simulated device. It is a table of host functions, one per kernel, which
 * replaces the image of a real module. cuModuleLoadData() takes the table, and
 * cuModuleGetFunction() finds the kernels by name.
 *
 * The blocks of a launch run at the same time, each in a host thread, as on a GPU with room for all
 * blocks. A block has no threads of its own. A kernel must not call the driver.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SIM_HOST_IMAGE_MAGIC 0x6b686d69u
/* Limit on the blocks of a launch. A current GPU does not run as many at once. */
#define SIM_HOST_BLOCKS_MAX 256

struct sim_host_kernel {
	const char *name;
	/* size of the kernel's only parameter; a launch by buffer may pass fewer bytes */
	size_t param_bytes;
	void (*run)(const void *param, unsigned int block, unsigned int blocks);
};

struct sim_host_image {
	uint32_t magic;
	uint32_t count;
	const struct sim_host_kernel *kernels;
};
