/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laboratory's libnvidia-ml.so.1: the part of NVML that NCCL calls, for devices without NVLink,
 * fabric or confidential computing. Numbers are the public ABI's.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DEVICES_MAX 64
#define DEVICES_DEFAULT 8

#define NVML_SUCCESS 0
#define NVML_ERROR_INVALID_ARGUMENT 2
#define NVML_ERROR_NOT_SUPPORTED 3
#define NVML_ERROR_NOT_FOUND 6
#define NVML_P2P_STATUS_OK 0
#define NVML_P2P_STATUS_NOT_SUPPORTED 5

/* A handle is the address of the device's number. */
typedef int *nvml_device;

struct nvml_field_value {
	unsigned int field;
	unsigned int scope;
	long long timestamp;
	long long latency_us;
	int value_type;
	int result;
	uint64_t value;
};

static int numbers[DEVICES_MAX];

int nvmlInit(void);
int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlDeviceGetCount(unsigned int *count);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex(unsigned int index, nvml_device *device);
int nvmlDeviceGetHandleByPciBusId(const char *id, nvml_device *device);
int nvmlDeviceGetIndex(nvml_device device, unsigned int *index);
int nvmlDeviceGetNvLinkState(nvml_device device, unsigned int link, int *state);
int nvmlDeviceGetNvLinkRemotePciInfo(nvml_device device, unsigned int link, void *pci);
int nvmlDeviceGetNvLinkCapability(nvml_device device, unsigned int link, int capability,
				  unsigned int *has);
int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor);
int nvmlDeviceGetP2PStatus(nvml_device a, nvml_device b, int index, int *status);
int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field_value *values);
int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device device, unsigned int *generation);
int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned int *width);

/* The device count of the simulated driver: both read the same variable. */
static unsigned int device_count(void)
{
	const char *env = getenv("SIM_CUDA_DEVICES");
	long n = env ? strtol(env, NULL, 10) : DEVICES_DEFAULT;

	return n < 1 ? 1 : n > DEVICES_MAX ? DEVICES_MAX : (unsigned int)n;
}

int nvmlInit_v2(void)
{
	for (int i = 0; i < DEVICES_MAX; i++)
		numbers[i] = i;
	return NVML_SUCCESS;
}

int nvmlInit(void)
{
	return nvmlInit_v2();
}

int nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

const char *nvmlErrorString(int result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	default:
		return "Unknown Error";
	}
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = device_count();
	return NVML_SUCCESS;
}

int nvmlDeviceGetCount(unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

int nvmlDeviceGetHandleByIndex(unsigned int index, nvml_device *device)
{
	if (index >= device_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &numbers[index];
	return NVML_SUCCESS;
}

/* The simulated driver's numbering: domain 0, a bus for each device, from 1. */
int nvmlDeviceGetHandleByPciBusId(const char *id, nvml_device *device)
{
	unsigned int domain, bus, slot;

	if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (domain != 0 || slot != 0 || bus == 0 || bus > device_count())
		return NVML_ERROR_NOT_FOUND;
	*device = &numbers[bus - 1];
	return NVML_SUCCESS;
}

int nvmlDeviceGetIndex(nvml_device device, unsigned int *index)
{
	*index = (unsigned int)*device;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkState(nvml_device device, unsigned int link, int *state)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo(nvml_device device, unsigned int link, void *pci)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkCapability(nvml_device device, unsigned int link, int capability,
				  unsigned int *has)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
	*major = 9;
	*minor = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetP2PStatus(nvml_device a, nvml_device b, int index, int *status)
{
	/* Agrees with the simulated driver: both read the same variable. */
	*status = getenv("SIM_CUDA_PEERS") ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field_value *values)
{
	for (int i = 0; i < count; i++)
		values[i].result = NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device device, unsigned int *generation)
{
	*generation = 5;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned int *width)
{
	*width = 16;
	return NVML_SUCCESS;
}
