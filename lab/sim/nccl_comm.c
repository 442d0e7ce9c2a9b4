/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifetime of a communicator. The caller's handle, every launch and every running host operation
 * hold a reference. So an abort can release the handle while a stream is still finishing.
 */
#include "lab/sim/nccl_comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lab/sim/nccl_cuda.h"
#include "lab/sim/nccl_profiler.h"
#include "lab/sim/nccl_reduce.h"
#include "lab/sim/nccl_sim.h"

static void comm_free(ncclComm_t comm)
{
	sim_launches_free(comm);
	sim_profiler_finalize(comm);
	for (int p = 0; p < comm->nranks; p++) {
		if (comm->coll)
			sim_link_fini(&comm->coll[p]);
		if (comm->p2p)
			sim_link_fini(&comm->p2p[p]);
	}
	while (comm->redops) {
		struct sim_redop *op = comm->redops;

		comm->redops = op->next;
		free(op);
	}
	sim_listener_close(&comm->listener);
	if (comm->abort_fd >= 0)
		close(comm->abort_fd);
	pthread_cond_destroy(&comm->turn);
	pthread_mutex_destroy(&comm->lock);
	pthread_mutex_destroy(&comm->host_lock);
	free(comm->addrs);
	free(comm->coll);
	free(comm->p2p);
	comm->magic = 0;
	free(comm);
}

static void configure(ncclComm_t comm, const ncclConfig_t *config, const struct ncclComm *parent)
{
	const char *name = config ? config->commName : parent ? parent->name : NULL;

	comm->is_blocking = parent ? parent->is_blocking : true;
	if (config && config->blocking != NCCL_CONFIG_UNDEF_INT)
		comm->is_blocking = config->blocking != 0;
	if (name)
		(void)snprintf(comm->name, sizeof(comm->name), "%s", name);
}

ncclResult_t sim_comm_new(int nranks, int rank, const ncclConfig_t *config,
			  const struct ncclComm *parent, ncclComm_t *ret_comm)
{
	ncclComm_t comm = calloc(1, sizeof(*comm));
	ncclResult_t result = ncclSuccess;

	if (!comm)
		return sim_fail(ncclSystemError, "out of memory");
	comm->magic = SIM_COMM_MAGIC;
	comm->refs = 1;
	comm->rank = rank;
	comm->nranks = nranks;
	comm->next_redop = ncclNumOps;
	configure(comm, config, parent);
	comm->listener.fd = -1;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_mutex_init(&comm->host_lock, NULL);
	pthread_cond_init(&comm->turn, NULL);
	comm->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	comm->addrs = calloc((size_t)nranks, sizeof(*comm->addrs));
	comm->coll = calloc((size_t)nranks, sizeof(*comm->coll));
	comm->p2p = calloc((size_t)nranks, sizeof(*comm->p2p));
	for (int p = 0; comm->coll && comm->p2p && p < nranks; p++) {
		sim_link_init(&comm->coll[p], -1);
		sim_link_init(&comm->p2p[p], -1);
	}
	if (comm->abort_fd < 0 || !comm->addrs || !comm->coll || !comm->p2p) {
		result = sim_fail(ncclSystemError, "no resources for a communicator");
	} else if (parent) {
		comm->ctx = parent->ctx;
		comm->device = parent->device;
	} else {
		result = sim_cuda_current(&comm->ctx, &comm->device);
	}
	if (result != ncclSuccess) {
		comm_free(comm);
		return result;
	}
	*ret_comm = comm;
	return ncclSuccess;
}

void sim_comm_ref(ncclComm_t comm)
{
	__atomic_add_fetch(&comm->refs, 1, __ATOMIC_RELAXED);
}

void sim_comm_unref(ncclComm_t comm)
{
	if (__atomic_sub_fetch(&comm->refs, 1, __ATOMIC_ACQ_REL) == 0)
		comm_free(comm);
}

void sim_comm_release(ncclComm_t comm)
{
	if (!__atomic_exchange_n(&comm->is_released, true, __ATOMIC_ACQ_REL))
		sim_comm_unref(comm);
}

void sim_comm_set_async(ncclComm_t comm, ncclResult_t result)
{
	__atomic_store_n(&comm->async, result, __ATOMIC_RELEASE);
}

static ncclResult_t check_handle(ncclComm_t comm)
{
	if (!comm || comm->magic != SIM_COMM_MAGIC)
		return sim_fail(ncclInvalidArgument, "the communicator handle is not valid");
	return ncclSuccess;
}

ncclResult_t sim_comm_check(ncclComm_t comm)
{
	ncclResult_t async;

	if (check_handle(comm) != ncclSuccess)
		return ncclInvalidArgument;
	async = __atomic_load_n(&comm->async, __ATOMIC_ACQUIRE);
	if (async == ncclInProgress)
		return sim_fail(ncclInvalidArgument,
				"the communicator's previous operation has not ended yet");
	return async;
}

struct sim_redop *sim_comm_find_redop(ncclComm_t comm, ncclRedOp_t handle)
{
	struct sim_redop *op;

	pthread_mutex_lock(&comm->lock);
	op = comm->redops;
	while (op && op->handle != handle)
		op = op->next;
	pthread_mutex_unlock(&comm->lock);
	return op;
}

/* Wakes all threads that wait for peers of this communicator, in streams and on the host. */
static void interrupt(ncclComm_t comm)
{
	pthread_mutex_lock(&comm->lock);
	comm->is_aborted = true;
	/* cannot overflow, because each abort writes it once */
	(void)eventfd_write(comm->abort_fd, 1);
	pthread_cond_broadcast(&comm->turn);
	pthread_mutex_unlock(&comm->lock);
}

void sim_comm_revoke(ncclComm_t comm)
{
	eventfd_t ignored;

	interrupt(comm);
	/* After all launches have left, host calls (split, shrink) may wait for peers again. */
	sim_launch_drain(comm);
	(void)eventfd_read(comm->abort_fd, &ignored);
	comm->is_aborted = false;
	comm->is_revoked = true;
}

NCCL_API(ncclResult_t, CommFinalize, ncclComm_t comm)
{
	ncclResult_t result = sim_comm_check(comm);

	if (result == ncclSuccess)
		sim_launch_drain(comm);
	return result;
}

NCCL_API(ncclResult_t, CommDestroy, ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (check_handle(comm) != ncclSuccess)
		return ncclInvalidArgument;
	sim_launch_drain(comm);
	sim_comm_release(comm);
	return ncclSuccess;
}

NCCL_API(ncclResult_t, CommAbort, ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (check_handle(comm) != ncclSuccess)
		return ncclInvalidArgument;
	interrupt(comm);
	sim_comm_release(comm);
	return ncclSuccess;
}

NCCL_API(ncclResult_t, CommRevoke, ncclComm_t comm, int flags)
{
	ncclResult_t result = sim_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (flags != NCCL_REVOKE_DEFAULT)
		return sim_fail(ncclInvalidArgument, "CommRevoke: unknown flags");
	sim_comm_revoke(comm);
	return ncclSuccess;
}

NCCL_API(ncclResult_t, CommGetAsyncError, ncclComm_t comm, ncclResult_t *error)
{
	if (!error)
		return sim_fail(ncclInvalidArgument, "CommGetAsyncError: error is NULL");
	if (check_handle(comm) != ncclSuccess)
		return ncclInvalidArgument;
	*error = __atomic_load_n(&comm->async, __ATOMIC_ACQUIRE);
	return ncclSuccess;
}

static ncclResult_t query(ncclComm_t comm, const int *field, int *out)
{
	ncclResult_t result = sim_comm_check(comm);

	if (result != ncclSuccess)
		return result;
	if (!out)
		return sim_fail(ncclInvalidArgument, "the output pointer is NULL");
	*out = *field;
	return ncclSuccess;
}

NCCL_API(ncclResult_t, CommCount, ncclComm_t comm, int *count)
{
	return query(comm, comm ? &comm->nranks : NULL, count);
}

NCCL_API(ncclResult_t, CommCuDevice, ncclComm_t comm, int *device)
{
	return query(comm, comm ? &comm->device : NULL, device);
}

NCCL_API(ncclResult_t, CommUserRank, ncclComm_t comm, int *rank)
{
	return query(comm, comm ? &comm->rank : NULL, rank);
}

NCCL_API(ncclResult_t, RedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar, ncclDataType_t dtype,
	 ncclScalarResidence_t residence, ncclComm_t comm)
{
	ncclResult_t result = sim_comm_check(comm);
	unsigned char value[8];
	struct sim_redop *r;

	if (result != ncclSuccess)
		return result;
	if (!op || !scalar || !sim_dtype_can_reduce(dtype))
		return sim_fail(ncclInvalidArgument, "RedOpCreatePreMulSum: bad argument");
	if (residence == ncclScalarHostImmediate)
		memcpy(value, scalar, sim_dtype_size(dtype));
	else if (!sim_cuda() || sim_cuda()->memcpy_dtoh(value, (CUdeviceptr)(uintptr_t)scalar,
							sim_dtype_size(dtype)) != CUDA_SUCCESS)
		return sim_fail(ncclUnhandledCudaError, "cannot read the scalar");
	r = calloc(1, sizeof(*r));
	if (!r)
		return sim_fail(ncclSystemError, "out of memory");
	r->dtype = dtype;
	r->scalar = sim_value_to_double(value, dtype);
	pthread_mutex_lock(&comm->lock);
	/* The handles of one operator differ between ranks, as in real NCCL. */
	r->handle = (ncclRedOp_t)(comm->next_redop++ + (comm->rank << 8));
	r->next = comm->redops;
	comm->redops = r;
	pthread_mutex_unlock(&comm->lock);
	*op = r->handle;
	return ncclSuccess;
}

NCCL_API(ncclResult_t, RedOpDestroy, ncclRedOp_t op, ncclComm_t comm)
{
	ncclResult_t result = sim_comm_check(comm);
	struct sim_redop **link, *found;

	if (result != ncclSuccess)
		return result;
	pthread_mutex_lock(&comm->lock);
	link = &comm->redops;
	while (*link && (*link)->handle != op)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&comm->lock);
	free(found);
	return found ? ncclSuccess
		     : sim_fail(ncclInvalidArgument, "RedOpDestroy: no such operator");
}
