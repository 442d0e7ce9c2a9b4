/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the simulated driver. Device memory is host memory that a table marks as device memory.
 * A registered host page has the same address on the device.
 *
 * We are stricter than the real driver in one point, so that mistakes show: cuMemHostRegister needs
 * whole pages. Freeing device memory waits for the device, as with the real driver.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab/sim/cuda/cuda_sim.h"

#define DEVICE_ALIGN 512

enum range_kind {
	RANGE_DEVICE,
	RANGE_SHARED, /* memory of a device that other processes can map */
	RANGE_MAPPED, /* memory of another process */
	RANGE_HOST_ALLOC,
	RANGE_HOST_REGISTERED,
};

struct range {
	struct range *next;
	enum range_kind kind;
	uintptr_t start;
	size_t size;
	unsigned int flags;
	struct CUctx_st *ctx;
};

static struct range *ranges;

static bool is_device(enum range_kind kind)
{
	return kind == RANGE_DEVICE || kind == RANGE_SHARED || kind == RANGE_MAPPED;
}

static struct range *find_containing(uintptr_t addr, size_t size)
{
	for (struct range *g = ranges; g; g = g->next) {
		if (addr >= g->start && size <= g->size && addr - g->start <= g->size - size)
			return g;
	}
	return NULL;
}

static struct range *find_overlapping(uintptr_t addr, size_t size)
{
	for (struct range *g = ranges; g; g = g->next) {
		if (addr < g->start + g->size && g->start < addr + size)
			return g;
	}
	return NULL;
}

bool sim_memory_is_device_visible(CUdeviceptr addr, size_t size)
{
	return find_containing((uintptr_t)addr, size) != NULL;
}

bool sim_memory_is_device(const void *addr, size_t size)
{
	struct range *g = find_containing((uintptr_t)addr, size);

	return g && is_device(g->kind);
}

/* Adds an entry for a range. Lock held. */
static CUresult range_add(enum range_kind kind, void *start, size_t size, unsigned int flags,
			  struct CUctx_st *ctx)
{
	struct range *g = malloc(sizeof(*g));

	if (!g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*g = (struct range){ .next = ranges,
			     .kind = kind,
			     .start = (uintptr_t)start,
			     .size = size,
			     .flags = flags,
			     .ctx = ctx };
	ranges = g;
	return CUDA_SUCCESS;
}

/*
 * Removes the entry of that kind that starts at this address. Returns the entry's size, or 0 if
 * there is none. Lock held.
 */
static size_t range_remove(enum range_kind kind, uintptr_t start)
{
	for (struct range **link = &ranges; *link; link = &(*link)->next) {
		struct range *g = *link;
		size_t size = g->size;

		if (g->kind == kind && g->start == start) {
			*link = g->next;
			free(g);
			return size;
		}
	}
	return 0;
}

static CUresult alloc(enum range_kind kind, size_t align, size_t size, unsigned int flags,
		      void **ret_ptr)
{
	struct CUctx_st *ctx;
	void *ptr;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_ptr || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (posix_memalign(&ptr, align, size) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim_lock);
	r = sim_capture_check_unsafe();
	if (r == CUDA_SUCCESS)
		r = range_add(kind, ptr, size, flags, ctx);
	pthread_mutex_unlock(&sim_lock);
	if (r != CUDA_SUCCESS) {
		free(ptr);
		return r;
	}
	*ret_ptr = ptr;
	return CUDA_SUCCESS;
}

static CUresult alloc_shared(size_t size, void **ret_ptr)
{
	struct CUctx_st *ctx;
	void *ptr = NULL;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	r = sim_capture_check_unsafe();
	if (r == CUDA_SUCCESS)
		ptr = sim_shared_alloc(size);
	if (r == CUDA_SUCCESS)
		r = ptr ? range_add(RANGE_SHARED, ptr, size, 0, ctx) : CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&sim_lock);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

CUresult cuMemAlloc(CUdeviceptr *ret_ptr, size_t size)
{
	void *ptr;
	CUresult r;

	if (!ret_ptr)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_has_peers() ? alloc_shared(size, &ptr)
			    : alloc(RANGE_DEVICE, DEVICE_ALIGN, size, 0, &ptr);
	if (r == CUDA_SUCCESS)
		*ret_ptr = (CUdeviceptr)(uintptr_t)ptr;
	return r;
}

static CUresult release(enum range_kind kind, uintptr_t addr)
{
	struct CUctx_st *ctx;
	size_t size;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!addr)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim_lock);
	sim_ctx_drain(ctx);
	size = range_remove(kind, addr);
	if (size && kind == RANGE_SHARED)
		sim_shared_free((void *)addr, size);
	else if (size && kind == RANGE_MAPPED)
		sim_shared_unmap((void *)addr, size);
	pthread_mutex_unlock(&sim_lock);
	if (size && kind != RANGE_SHARED && kind != RANGE_MAPPED)
		free((void *)addr);
	return size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree(CUdeviceptr ptr)
{
	return release(sim_has_peers() ? RANGE_SHARED : RANGE_DEVICE, (uintptr_t)ptr);
}

/* The handle covers the whole allocation around the address, as with the real driver. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct range *g;
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	g = find_containing((uintptr_t)ptr, 1);
	if (!handle || !g || g->kind == RANGE_MAPPED || !is_device(g->kind))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (g->kind != RANGE_SHARED || !sim_shared_handle((void *)g->start, g->size, handle))
		r = CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags)
{
	struct CUctx_st *ctx;
	size_t size;
	void *ptr;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_ptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	r = sim_shared_map(&handle, &ptr, &size);
	if (r == CUDA_SUCCESS) {
		r = range_add(RANGE_MAPPED, ptr, size, 0, ctx);
		if (r == CUDA_SUCCESS)
			*ret_ptr = (CUdeviceptr)(uintptr_t)ptr;
		else
			sim_shared_unmap(ptr, size);
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	return release(RANGE_MAPPED, (uintptr_t)ptr);
}

CUresult cuMemHostAlloc(void **ret_ptr, size_t size, unsigned int flags)
{
	return alloc(RANGE_HOST_ALLOC, (size_t)sysconf(_SC_PAGESIZE), size, flags, ret_ptr);
}

CUresult cuMemAllocHost(void **ret_ptr, size_t size)
{
	return cuMemHostAlloc(ret_ptr, size, 0);
}

CUresult cuMemFreeHost(void *ptr)
{
	return release(RANGE_HOST_ALLOC, (uintptr_t)ptr);
}

static bool pages_are_mapped(void *ptr, size_t size, size_t page)
{
	unsigned char vec[64];

	for (size_t off = 0; off < size; off += sizeof(vec) * page) {
		size_t part = size - off < sizeof(vec) * page ? size - off : sizeof(vec) * page;

		if (mincore((char *)ptr + off, part, vec) != 0)
			return false;
	}
	return true;
}

CUresult cuMemHostRegister(void *ptr, size_t size, unsigned int flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ptr || size == 0 || (uintptr_t)ptr % page || size % page ||
	    !pages_are_mapped(ptr, size, page))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	r = sim_capture_check_unsafe();
	if (r == CUDA_SUCCESS && find_overlapping((uintptr_t)ptr, size))
		r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (r == CUDA_SUCCESS)
		r = range_add(RANGE_HOST_REGISTERED, ptr, size, flags, ctx);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuMemHostUnregister(void *ptr)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	if (!range_remove(RANGE_HOST_REGISTERED, (uintptr_t)ptr))
		r = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* Finds the entry of a host pointer and copies it. */
static CUresult host_range(const void *ptr, struct range *ret_range)
{
	struct CUctx_st *ctx;
	struct range *g;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	g = find_containing((uintptr_t)ptr, 1);
	if (g && !is_device(g->kind))
		*ret_range = *g;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *dev_ptr, void *ptr, unsigned int flags)
{
	struct range g;
	CUresult r;

	if (!dev_ptr || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = host_range(ptr, &g);
	if (r == CUDA_SUCCESS)
		*dev_ptr = (CUdeviceptr)(uintptr_t)ptr;
	return r;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	struct range g;
	CUresult r;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = host_range(ptr, &g);
	if (r == CUDA_SUCCESS)
		*flags = g.flags;
	return r;
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct range *g;
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	g = find_containing((uintptr_t)ptr, 1);
	if (g && base)
		*base = g->start;
	if (g && size)
		*size = g->size;
	pthread_mutex_unlock(&sim_lock);
	return g ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attrib, CUdeviceptr ptr)
{
	struct range g = { 0 };
	struct range *found;
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	found = find_containing((uintptr_t)ptr, 1);
	if (found)
		g = *found;
	pthread_mutex_unlock(&sim_lock);
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;

	switch (attrib) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = g.ctx;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data =
			is_device(g.kind) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (is_device(g.kind))
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)ptr;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = g.ctx->dev;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(void **)data = (void *)g.start;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = g.size;
		break;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

/* ---- stream-ordered memory ---- */

/* A pool. It holds no memory, and only identifies an allocator. */
struct CUmemPoolHandle_st {
	CUdevice dev;
};

CUresult cuMemPoolCreate(CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_pool || !props)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location_id < 0 || props->location_id >= sim_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_pool = malloc(sizeof(**ret_pool));
	if (!*ret_pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*ret_pool)->dev = props->location_id;
	return CUDA_SUCCESS;
}

/* Allocations from the pool stay until the program frees them, as with the real driver. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	free(pool);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attr, void *value)
{
	return pool && value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* We allocate at once and not when the stream reaches the call. That does no harm. */
CUresult cuMemAllocAsync(CUdeviceptr *ret_ptr, size_t size, CUstream stream)
{
	return cuMemAlloc(ret_ptr, size);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret_ptr, size_t size, CUmemoryPool pool,
				 CUstream stream)
{
	return pool ? cuMemAlloc(ret_ptr, size) : CUDA_ERROR_INVALID_VALUE;
}

static void free_in_stream(void *ptr)
{
	enum range_kind kind = sim_has_peers() ? RANGE_SHARED : RANGE_DEVICE;
	size_t size;

	pthread_mutex_lock(&sim_lock);
	size = range_remove(kind, (uintptr_t)ptr);
	if (size && kind == RANGE_SHARED)
		sim_shared_free(ptr, size);
	pthread_mutex_unlock(&sim_lock);
	if (size && kind == RANGE_DEVICE)
		free(ptr);
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct range *g;
	bool is_start;

	if (!ptr)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim_lock);
	g = find_containing((uintptr_t)ptr, 1);
	is_start = g && is_device(g->kind) && g->kind != RANGE_MAPPED && g->start == (uintptr_t)ptr;
	pthread_mutex_unlock(&sim_lock);
	if (!is_start)
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchHostFunc(stream, free_in_stream, (void *)(uintptr_t)ptr);
}
