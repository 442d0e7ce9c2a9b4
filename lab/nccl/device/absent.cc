/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts that the host code refers to and this device lacks: symmetric kernels, network cards driven
 * from the GPU, NVTX.
 */
#include "debug.h"
#include "device.h"
#include "sym_kernels.h"
#include "transport/net_ib/gdaki/gin_host_gdaki.h"

extern int const ncclSymkKernelCount = 0;
void *ncclSymkKernelList[] = { nullptr };
int ncclSymkKernelRequirements[] = { 0 };
int ncclSymkKernelMaxDynamicSmem[] = { 0 };

int ncclSymkGetKernelIndex(ncclSymkKernelId id, int red, ncclDataType_t type)
{
	return -1;
}

int64_t ncclParamNvtxDisable()
{
	return 1;
}

void initNvtxRegisteredEnums();

void initNvtxRegisteredEnums()
{
}

static ncclResult_t has_not(const char *what)
{
	WARN("emulated device: %s is not emulated", what);
	return ncclInternalError;
}

ncclResult_t ncclGinResetSignalsAndCounters(struct ncclComm *comm, ncclDevComm_t const *dev_comm)
{
	if (dev_comm->ginSignalCount == 0 && dev_comm->ginCounterCount == 0)
		return ncclSuccess;
	return has_not("GIN");
}

ncclResult_t ncclGinGdakiCreateContext(void *coll_comm, int signals, int counters, int contexts,
				       void **ctx, ncclNetDeviceHandle_t **handle)
{
	return has_not("GDAKI");
}

ncclResult_t ncclGinGdakiDestroyContext(void *ctx)
{
	return has_not("GDAKI");
}

ncclResult_t ncclGinGdakiRegMrSym(void *coll_comm, void *data, size_t size, int type,
				  uint64_t flags, void **mhandle, void **gin_handle)
{
	return has_not("GDAKI");
}

ncclResult_t ncclGinGdakiDeregMrSym(void *coll_comm, void *mhandle)
{
	return has_not("GDAKI");
}

ncclResult_t ncclGinGdakiProgress(void *ctx)
{
	return has_not("GDAKI");
}

ncclResult_t ncclGinGdakiQueryLastError(void *ctx, bool *has_error)
{
	return has_not("GDAKI");
}
