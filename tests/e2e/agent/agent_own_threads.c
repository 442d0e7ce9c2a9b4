/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A NCCL that does nothing but call its own public functions, from the caller's thread and from one
 * of its own: through its PLT, as the real one does, so that a preloaded wrapper gets the calls.
 */
#include <nccl.h>
#include <pthread.h>
#include <stddef.h>

#define CALLS 10

unsigned calls_received(void);

static unsigned received;
static char handle;

unsigned calls_received(void)
{
	return __atomic_load_n(&received, __ATOMIC_RELAXED);
}

ncclResult_t ncclGetVersion(int *version)
{
	*version = 22809;
	return ncclSuccess;
}

__attribute__((noinline)) ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff,
						     size_t count, ncclDataType_t dtype,
						     ncclRedOp_t op, ncclComm_t comm,
						     cudaStream_t stream)
{
	(void)sendbuff, (void)recvbuff, (void)dtype, (void)op, (void)stream;
	(void)__atomic_fetch_add(&received, comm && count, __ATOMIC_RELAXED);
	return ncclSuccess;
}

static void *call(void *comm)
{
	for (int i = 0; i < CALLS; i++)
		(void)ncclAllReduce(NULL, NULL, 8, ncclFloat, ncclSum, comm, NULL);
	return NULL;
}

static ncclResult_t call_from_both(ncclComm_t comm)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, call, comm) != 0)
		return ncclSystemError;
	(void)pthread_join(thread, NULL);
	(void)call(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	(void)nranks, (void)id, (void)rank;
	*comm = (ncclComm_t)&handle;
	return call_from_both(*comm);
}

/* By then the communicator is known. */
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t dtype,
			   int root, ncclComm_t comm, cudaStream_t stream)
{
	(void)sendbuff, (void)recvbuff, (void)count, (void)dtype, (void)root, (void)stream;
	return call_from_both(comm);
}
