/* SPDX-License-Identifier: Apache-2.0 */
/* The thread behind a unique id of the simulated NCCL is gone, for the program, once init is. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LATE_NS 100000000

static sem_t init_returned;
static int root_closed; /* how often */

/* For all threads of the process. The root is as late as a busy machine can make it. */
int close(int fd)
{
	char name[16] = "";
	struct timespec until;

	(void)pthread_getname_np(pthread_self(), name, sizeof(name));
	if (strcmp(name, "NCCL BootstrapR") == 0) {
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LATE_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)sem_timedwait(&init_returned, &until);
		(void)__atomic_fetch_add(&root_closed, 1, __ATOMIC_RELAXED);
	}
	return (int)syscall(SYS_close, fd);
}

static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)close(fd);
	return fd;
}

Test(sim_root, leaves_no_descriptor_behind_when_init_returns)
{
	ncclUniqueId id;
	ncclComm_t comm;
	CUcontext context;
	int before, after;

	cr_assert_eq(sem_init(&init_returned, 0, 0), 0);
	cr_assert_eq(cuInit(0), CUDA_SUCCESS);
	cr_assert_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
	before = next_descriptor();
	cr_assert_eq(ncclGetUniqueId(&id), ncclSuccess);
	cr_assert_gt(next_descriptor(), before, "the root listens");
	cr_assert_eq(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
	after = next_descriptor();
	cr_assert_eq(after, before);
	cr_assert_eq(__atomic_load_n(&root_closed, __ATOMIC_RELAXED), 2, "rank and listener");
	cr_assert_eq(ncclCommDestroy(comm), ncclSuccess);
}
