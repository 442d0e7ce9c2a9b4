/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code of the simulated device: host functions, one per kernel, in a table that replaces
 * the image of a real module. cuModuleLoadData() takes it, cuModuleGetFunction() finds the kernels
 * by name.
 *
 * The blocks of a launch run at the same time, a thread each, as on a GPU with room for all of
 * them; threads of a block do not exist. A kernel may not call the driver.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SIM_HOST_IMAGE_MAGIC 0x6b686d69u
/* More blocks than a current GPU runs at once. */
#define SIM_HOST_BLOCKS_MAX 256

struct sim_host_kernel {
	const char *name;
	size_t param_bytes; /* of its one parameter; a launch by buffer may pass fewer bytes */
	void (*run)(const void *param, unsigned int block, unsigned int blocks);
};

struct sim_host_image {
	uint32_t magic;
	uint32_t count;
	const struct sim_host_kernel *kernels;
};
