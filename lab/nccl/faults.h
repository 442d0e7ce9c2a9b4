/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults of a job on the emulated device and on NCCL's sockets. All ranks of the job map one
 * file with this layout (LAB_FAULTS), and a test writes into it. The file begins as zeros, without
 * a fault. tests/lib/nccl_faults.py has the same layout.
 */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LAB_FAULTS_MAX_SOCKETS 64u

enum lab_socket_fault {
	LAB_SOCKET_SENDS_NOTHING = 1,
	LAB_SOCKET_RECEIVES_NOTHING = 2,
	LAB_SOCKET_SENDS_SLOWLY = 3,
};

enum lab_gpu_fault {
	LAB_GPU_STARTS_NO_KERNEL = 1,
	LAB_GPU_STOPS = 2, /* in the middle of a kernel */
};

struct lab_faults {
	uint32_t gpu_fault; /* enum lab_gpu_fault, or 0 */
	uint32_t gpu_rank;
	uint32_t gpu_slices; /* number of slices that the GPU still moves before it stops */
	uint32_t n_sockets;
	struct {
		/*
		 * The address at which the receiver listens: IPv4 address << 16 | port. NCCL
		 * listens at a port of its own for each connection, and may use several sockets for
		 * one.
		 */
		uint64_t address;
		uint32_t fault; /* enum lab_socket_fault */
		/*
		 * LAB_SOCKET_SENDS_SLOWLY: bytes per second. Other faults: number of bytes that the
		 * socket still moves.
		 */
		uint32_t bytes;
	} sockets[LAB_FAULTS_MAX_SOCKETS];
};

/* Maps the file that LAB_FAULTS names. NULL = the variable is not set, or no such file exists. */
static inline const struct lab_faults *lab_faults_map(void)
{
	const char *path = getenv("LAB_FAULTS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = MAP_FAILED;

	if (fd >= 0) {
		at = mmap(NULL, sizeof(struct lab_faults), PROT_READ, MAP_SHARED, fd, 0);
		(void)close(fd);
	}
	return at == MAP_FAILED ? NULL : (const struct lab_faults *)at;
}
