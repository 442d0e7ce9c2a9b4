/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a device in two processes. Every test runs in a process of its own. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 10000

static CUresult use_device(void)
{
	CUcontext ctx;

	return cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx)
		       ? CUDA_ERROR_UNKNOWN
		       : CUDA_SUCCESS;
}

static int read_all(int fd, void *buf, size_t len)
{
	return read(fd, buf, len) == (ssize_t)len ? 0 : -1;
}

/* Takes a handle, expects a 7 at the end of its memory, writes an 8, and reports that. */
static int other_process(int from, int to)
{
	CUipcMemHandle handle;
	unsigned int type = 0;
	CUdeviceptr ptr;

	if (read_all(from, &handle, sizeof(handle)) < 0 || use_device() != CUDA_SUCCESS)
		return 2;
	if (cuIpcOpenMemHandle(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS)
		return 3;
	if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr) != CUDA_SUCCESS ||
	    type != CU_MEMORYTYPE_DEVICE || *(char *)(uintptr_t)(ptr + BYTES - 1) != 7)
		return 4;
	if (cuMemsetD8(ptr + BYTES - 1, 8, 1) != CUDA_SUCCESS)
		return 5;
	if (cuMemFree(ptr) == CUDA_SUCCESS || cuIpcCloseMemHandle(ptr) != CUDA_SUCCESS ||
	    cuIpcCloseMemHandle(ptr) == CUDA_SUCCESS)
		return 6;
	return write(to, "", 1) == 1 ? 0 : 7;
}

Test(sim_ipc, two_processes_share_what_one_of_them_allocated)
{
	int there[2], back[2], status, can = 0;
	CUdeviceptr first, ptr;
	CUipcMemHandle handle;
	pid_t child;
	char byte;

	cr_assert_eq(setenv("SIM_CUDA_PEERS", "1", 1), 0);
	cr_assert(pipe(there) == 0 && pipe(back) == 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(other_process(there[0], back[1]));
	cr_assert_eq(use_device(), CUDA_SUCCESS);
	cr_assert_eq(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
	cr_assert_eq(can, 1);
	cr_assert_eq(cuMemAlloc(&first, 1), CUDA_SUCCESS); /* not at the beginning of all */
	cr_assert_eq(cuMemAlloc(&ptr, BYTES), CUDA_SUCCESS);
	cr_assert_eq(cuMemsetD8(ptr, 7, BYTES), CUDA_SUCCESS);
	cr_assert_eq(cuIpcGetMemHandle(&handle, ptr + 5), CUDA_SUCCESS);
	cr_assert_neq(cuIpcOpenMemHandle(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		      CUDA_SUCCESS, "of one's own process");
	cr_assert_eq(write(there[1], &handle, sizeof(handle)), (ssize_t)sizeof(handle));
	close(back[1]);
	if (read_all(back[0], &byte, 1) == 0)
		cr_assert_eq(*(volatile char *)(uintptr_t)(ptr + BYTES - 1), 8);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
	cr_assert_eq(cuMemFree(ptr), CUDA_SUCCESS);
	cr_assert_neq(cuMemFree(ptr), CUDA_SUCCESS);
	cr_assert_neq(cuIpcGetMemHandle(&handle, ptr), CUDA_SUCCESS);
}

Test(sim_ipc, is_not_there_unless_asked_for)
{
	CUipcMemHandle handle;
	CUdeviceptr ptr;
	int can = 1;

	cr_assert_eq(unsetenv("SIM_CUDA_PEERS"), 0);
	cr_assert_eq(use_device(), CUDA_SUCCESS);
	cr_assert_eq(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
	cr_assert_eq(can, 0);
	cr_assert_eq(cuMemAlloc(&ptr, BYTES), CUDA_SUCCESS);
	cr_assert_eq(cuIpcGetMemHandle(&handle, ptr), CUDA_ERROR_NOT_SUPPORTED);
	memset(&handle, 0, sizeof(handle));
	cr_assert_eq(cuIpcOpenMemHandle(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		     CUDA_ERROR_INVALID_VALUE);
}

Test(sim_ipc, kernels_and_streams_use_shared_memory_as_any_other)
{
	char host[BYTES];
	CUdeviceptr a, b;
	CUstream stream;

	cr_assert_eq(setenv("SIM_CUDA_PEERS", "1", 1), 0);
	cr_assert_eq(use_device(), CUDA_SUCCESS);
	cr_assert_eq(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	cr_assert_eq(cuMemAllocAsync(&a, BYTES, stream), CUDA_SUCCESS);
	cr_assert_eq(cuMemAlloc(&b, BYTES), CUDA_SUCCESS);
	cr_assert_eq(cuMemsetD8Async(a, 3, BYTES, stream), CUDA_SUCCESS);
	cr_assert_eq(cuMemcpyDtoDAsync(b, a, BYTES, stream), CUDA_SUCCESS);
	cr_assert_eq(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
	cr_assert_eq(cuMemcpyDtoH(host, b, BYTES), CUDA_SUCCESS);
	for (size_t i = 0; i < BYTES; i++)
		cr_assert_eq(host[i], 3);
	cr_assert_eq(cuMemFree(b), CUDA_SUCCESS);
}
