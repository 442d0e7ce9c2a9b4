/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that other processes can map. If SIM_CUDA_PEERS is set, all device memory of a
 * process comes from one file in memory, which is far larger than any program needs. We never reuse
 * addresses. Freed memory becomes a hole in the file, so the system gets it back. A handle has the
 * process's file and the position in it. Another process of the same user maps just that part.
 *
 * Without SIM_CUDA_PEERS device memory comes from malloc(), where sanitizers check it. No device
 * can then access another one's memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab/sim/cuda/cuda_sim.h"

/* Size of the file. It takes only address space, a quarter of a percent of that of a process. */
#define ARENA_BYTES ((size_t)1 << 40)

static struct {
	int fd;
	char *start;
	size_t used;
} arena = { .fd = -1 };

/* The contents of a handle. */
struct handle {
	uint32_t magic;
	int32_t pid;
	int32_t fd;
	uint32_t reserved;
	uint64_t offset;
	uint64_t size;
};

#define HANDLE_MAGIC 0x63704963u

_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "it fits");

bool sim_has_peers(void)
{
	return getenv("SIM_CUDA_PEERS") != NULL;
}

static size_t whole_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* Makes the file and maps it. Lock held. */
static bool open_arena(void)
{
	void *start;

	if (arena.start)
		return true;
	if (arena.fd < 0)
		arena.fd = memfd_create("simulated device", MFD_CLOEXEC);
	if (arena.fd < 0 || ftruncate(arena.fd, ARENA_BYTES) < 0)
		return false;
	start = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		     arena.fd, 0);
	if (start == MAP_FAILED)
		return false;
	arena.start = start;
	return true;
}

void *sim_shared_alloc(size_t size)
{
	void *ptr;

	if (!open_arena() || size > ARENA_BYTES - arena.used)
		return NULL;
	ptr = arena.start + arena.used;
	arena.used += whole_pages(size);
	return ptr;
}

void sim_shared_free(void *ptr, size_t size)
{
	/* Other processes that have mapped the memory read zeros from now on. */
	(void)fallocate(arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(char *)ptr - arena.start, (off_t)whole_pages(size));
}

bool sim_shared_handle(const void *ptr, size_t size, CUipcMemHandle *ret_handle)
{
	const struct handle h = { .magic = HANDLE_MAGIC,
				  .pid = getpid(),
				  .fd = arena.fd,
				  .offset = (uint64_t)((const char *)ptr - arena.start),
				  .size = size };

	if (!arena.start)
		return false;
	memset(ret_handle, 0, sizeof(*ret_handle));
	memcpy(ret_handle, &h, sizeof(h));
	return true;
}

CUresult sim_shared_map(const CUipcMemHandle *handle, void **ret_ptr, size_t *ret_size)
{
	char path[64];
	struct handle h;
	void *ptr;
	int fd;

	memcpy(&h, handle, sizeof(h));
	if (h.magic != HANDLE_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (h.pid == getpid())
		/* as with the real driver: this process has the memory already */
		return CUDA_ERROR_INVALID_CONTEXT;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)h.pid, (int)h.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	ptr = mmap(NULL, whole_pages(h.size), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)h.offset);
	close(fd);
	if (ptr == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_ptr = ptr;
	*ret_size = h.size;
	return CUDA_SUCCESS;
}

void sim_shared_unmap(void *ptr, size_t size)
{
	(void)munmap(ptr, whole_pages(size));
}
