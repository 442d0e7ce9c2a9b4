/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the simulated driver and its devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/cuda/cuda_sim.h"

#define DEVICE_BYTES (1ULL << 34)

static CUresult check_device(CUdevice dev, const void *out)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return dev >= 0 && dev < sim_device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	CUresult r = check_device(ordinal, dev);

	if (r == CUDA_SUCCESS)
		*dev = ordinal;
	return r;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult r = check_device(0, count);

	if (r == CUDA_SUCCESS)
		*count = sim_device_count();
	return r;
}

/* Returns the same name for all devices of a process. */
CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	const char *model = getenv("SIM_CUDA_MODEL");
	CUresult r = check_device(dev, name);

	if (r == CUDA_SUCCESS && len > 0)
		snprintf(name, (size_t)len, "%s", model ? model : "Simulated device");
	return r;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	CUresult r = check_device(dev, uuid);

	if (r == CUDA_SUCCESS) {
		memset(uuid, 0, sizeof(*uuid));
		memcpy(uuid->bytes, "simulated", 9);
		uuid->bytes[15] = (char)dev;
	}
	return r;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
	CUresult r = check_device(dev, bytes);

	if (r == CUDA_SUCCESS)
		*bytes = DEVICE_BYTES;
	return r;
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!free_bytes || !total_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*free_bytes = DEVICE_BYTES / 2;
	*total_bytes = DEVICE_BYTES;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	CUresult r = check_device(dev, id);

	if (r != CUDA_SUCCESS)
		return r;
	if (len < 13)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(id, (size_t)len, "0000:%02X:00.0", (unsigned int)dev + 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	unsigned int domain, bus, slot;
	CUresult r = check_device(0, dev);

	if (r != CUDA_SUCCESS)
		return r;
	if (!id || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain != 0 || slot != 0 || bus == 0 || bus > (unsigned int)sim_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = (CUdevice)bus - 1;
	return CUDA_SUCCESS;
}

/* Device memory belongs to one process, unless SIM_CUDA_PEERS is set. */
CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	CUresult r = check_device(dev, can);

	if (r == CUDA_SUCCESS)
		r = check_device(peer, can);
	if (r == CUDA_SUCCESS)
		*can = dev != peer && sim_has_peers();
	return r;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attrib, CUdevice dev)
{
	static const struct {
		CUdevice_attribute attrib;
		int value;
	} table[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132 },
		{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
		{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1 },
	};
	CUresult r = check_device(dev, value);

	if (r != CUDA_SUCCESS)
		return r;
	if (attrib <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*value = attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? dev + 1 : 0;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].attrib == attrib)
			*value = table[i].value;
	}
	return CUDA_SUCCESS;
}
