/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions that make communicators, and those for memory. */
#include <stdlib.h>
#include <string.h>

#include "lab/sim/nccl_cuda.h"
#include "lab/sim/nccl_proxy.h"
#include "lab/sim/nccl_sim.h"

#define CONFIG_MAGIC 0xcafebeef

static ncclResult_t check_config(const ncclConfig_t *config)
{
	if (config && config->magic != CONFIG_MAGIC)
		return sim_fail(ncclInvalidArgument, "the configuration is not initialised");
	return ncclSuccess;
}

static ncclResult_t add_init(ncclComm_t *newcomm, int nranks, const ncclUniqueId *id, int rank,
			     const ncclConfig_t *config)
{
	struct sim_job job = { .newcomm = newcomm, .id = *id };
	ncclResult_t result;

	if (!newcomm || nranks < 1 || rank < 0 || rank >= nranks)
		return sim_fail(ncclInvalidArgument, "init: rank %d of %d", rank, nranks);
	result = check_config(config);
	if (result == ncclSuccess)
		result = sim_comm_new(nranks, rank, config, NULL, &job.comm);
	if (result != ncclSuccess)
		return result;
	/* We set the handle early, because a non-blocking caller queries the state with it. */
	*newcomm = job.comm;
	sim_comm_ref(job.comm);
	return sim_group_add_job(&job);
}

static ncclResult_t init(ncclComm_t *newcomm, int nranks, const ncclUniqueId *id, int rank,
			 const ncclConfig_t *config)
{
	ncclResult_t result, end;
	int version;

	sim_proxy_start();
	sim_group_start();
	result = ncclGetVersion(&version);
	if (result == ncclSuccess)
		result = add_init(newcomm, nranks, id, rank, config);
	(void)sim_group_note(result);
	end = sim_group_end(NULL);
	return result == ncclSuccess ? end : result;
}

NCCL_API(ncclResult_t, CommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	return init(comm, nranks, &id, rank, NULL);
}

NCCL_API(ncclResult_t, CommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
	 ncclConfig_t *config)
{
	return init(comm, nranks, &id, rank, config);
}

NCCL_API(ncclResult_t, CommInitRankScalable, ncclComm_t *comm, int nranks, int rank, int num_ids,
	 ncclUniqueId *ids, ncclConfig_t *config)
{
	/* Further roots only speed up a large start, so we use the first one for all ranks. */
	if (num_ids < 1 || !ids)
		return sim_fail(ncclInvalidArgument, "CommInitRankScalable: no unique id");
	return init(comm, nranks, &ids[0], rank, config);
}

NCCL_API(ncclResult_t, CommInitAll, ncclComm_t *comms, int ndev, const int *devlist)
{
	const struct sim_cuda *cuda = sim_cuda();
	CUcontext old, ctx;
	ncclUniqueId id;
	ncclResult_t result, end;
	int dev;

	if (!cuda)
		return ncclUnhandledCudaError;
	if (!comms || ndev < 1)
		return sim_fail(ncclInvalidArgument, "CommInitAll: no devices");
	result = sim_cuda_current(&old, &dev);
	if (result == ncclSuccess)
		result = ncclGetUniqueId(&id);
	if (result != ncclSuccess)
		return result;

	sim_group_start();
	for (int i = 0; i < ndev && result == ncclSuccess; i++) {
		if (cuda->retain_primary(&ctx, devlist ? devlist[i] : i) != CUDA_SUCCESS ||
		    cuda->set_ctx(ctx) != CUDA_SUCCESS)
			result = sim_fail(ncclInvalidArgument, "CommInitAll: no device %d",
					  devlist ? devlist[i] : i);
		else
			result = add_init(&comms[i], ndev, &id, i, NULL);
	}
	(void)cuda->set_ctx(old);
	(void)sim_group_note(result);
	end = sim_group_end(NULL);
	return result == ncclSuccess ? end : result;
}

/*
 * Adds a split to the group. @exclude: per rank, true if it does not take part; NULL = all take
 * part.
 */
static ncclResult_t add_split(ncclComm_t comm, const bool *exclude, int color, int key,
			      ncclComm_t *newcomm, const ncclConfig_t *config)
{
	struct sim_job job = { .comm = comm, .newcomm = newcomm, .color = color, .split_key = key };
	ncclResult_t result = check_config(config);

	if (result != ncclSuccess)
		return result;
	job.group = malloc((size_t)comm->nranks * sizeof(*job.group));
	if (!job.group)
		return sim_fail(ncclSystemError, "out of memory");
	for (int p = 0; p < comm->nranks; p++) {
		if (!exclude || !exclude[p])
			job.group[job.num_group++] = p;
	}
	if (config) {
		job.has_config = true;
		job.config = *config;
	}
	job.ordinal = __atomic_fetch_add(&comm->splits, 1, __ATOMIC_RELAXED);
	*newcomm = NULL;
	sim_comm_ref(comm);
	return sim_group_add_job(&job);
}

NCCL_API(ncclResult_t, CommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
	 ncclConfig_t *config)
{
	ncclResult_t result, end;

	sim_group_start();
	result = sim_comm_check(comm);
	if (result == ncclSuccess && (!newcomm || (color < 0 && color != NCCL_SPLIT_NOCOLOR)))
		result = sim_fail(ncclInvalidArgument, "CommSplit: colour %d", color);
	if (result == ncclSuccess)
		result = add_split(comm, NULL, color, key, newcomm, config);
	(void)sim_group_note(result);
	end = sim_group_end(NULL);
	return result == ncclSuccess ? end : result;
}

NCCL_API(ncclResult_t, CommShrink, ncclComm_t comm, int *exclude, int num_exclude,
	 ncclComm_t *newcomm, ncclConfig_t *config, int flags)
{
	ncclResult_t result, end;
	bool *is_excluded = NULL;

	sim_group_start();
	result = sim_comm_check(comm);
	if (result == ncclSuccess && (flags & NCCL_SHRINK_ABORT))
		sim_comm_revoke(comm);
	if (result == ncclSuccess && (!newcomm || !exclude || num_exclude < 1))
		result = sim_fail(ncclInvalidArgument, "CommShrink: no rank to exclude");
	if (result == ncclSuccess) {
		is_excluded = calloc((size_t)comm->nranks, sizeof(*is_excluded));
		if (!is_excluded)
			result = sim_fail(ncclSystemError, "out of memory");
	}
	for (int i = 0; result == ncclSuccess && i < num_exclude; i++) {
		if (exclude[i] < 0 || exclude[i] >= comm->nranks || exclude[i] == comm->rank)
			result = sim_fail(ncclInvalidArgument, "CommShrink: rank %d", exclude[i]);
		else
			is_excluded[exclude[i]] = true;
	}
	if (result == ncclSuccess)
		result = add_split(comm, is_excluded, 0, comm->rank, newcomm, config);
	free(is_excluded);
	(void)sim_group_note(result);
	end = sim_group_end(NULL);
	return result == ncclSuccess ? end : result;
}

NCCL_API(ncclResult_t, MemAlloc, void **ptr, size_t size)
{
	const struct sim_cuda *cuda = sim_cuda();
	CUcontext ctx;
	CUdeviceptr dev_ptr;
	int dev;

	if (!ptr || !size)
		return sim_fail(ncclInvalidArgument, "MemAlloc: bad argument");
	if (!cuda || sim_cuda_current(&ctx, &dev) != ncclSuccess ||
	    cuda->mem_alloc(&dev_ptr, size) != CUDA_SUCCESS)
		return sim_fail(ncclUnhandledCudaError, "MemAlloc: no device memory");
	*ptr = (void *)(uintptr_t)dev_ptr;
	return ncclSuccess;
}

NCCL_API(ncclResult_t, MemFree, void *ptr)
{
	const struct sim_cuda *cuda = sim_cuda();

	if (!cuda || cuda->mem_free((CUdeviceptr)(uintptr_t)ptr) != CUDA_SUCCESS)
		return sim_fail(ncclUnhandledCudaError, "MemFree: not allocated here");
	return ncclSuccess;
}

/* A registered buffer. Registration only speeds up real transfers, so we merely record it. */
struct registration {
	void *buff;
	size_t size;
};

NCCL_API(ncclResult_t, CommRegister, ncclComm_t comm, void *buff, size_t size, void **handle)
{
	ncclResult_t result = sim_comm_check(comm);
	struct registration *r;

	if (result != ncclSuccess)
		return result;
	if (!buff || !size || !handle)
		return sim_fail(ncclInvalidArgument, "CommRegister: bad argument");
	r = malloc(sizeof(*r));
	if (!r)
		return sim_fail(ncclSystemError, "out of memory");
	*r = (struct registration){ buff, size };
	*handle = r;
	return ncclSuccess;
}

NCCL_API(ncclResult_t, CommDeregister, ncclComm_t comm, void *handle)
{
	ncclResult_t result = sim_comm_check(comm);

	if (result == ncclSuccess)
		free(handle);
	return result;
}

NCCL_API(ncclResult_t, CommWindowRegister, ncclComm_t comm, void *buff, size_t size,
	 ncclWindow_t *win, int flags)
{
	return sim_fail(ncclInvalidUsage, "symmetric memory windows are not simulated");
}

NCCL_API(ncclResult_t, CommWindowDeregister, ncclComm_t comm, ncclWindow_t win)
{
	return sim_fail(ncclInvalidUsage, "symmetric memory windows are not simulated");
}

/* Functions of the device interface (nccl_device.h). Its structures are opaque here. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements, void *dev_comm);
ncclResult_t pncclDevCommCreate(ncclComm_t comm, const void *requirements, void *dev_comm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *dev_comm);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const void *dev_comm);

NCCL_API(ncclResult_t, DevCommCreate, ncclComm_t comm, const void *requirements, void *dev_comm)
{
	return sim_fail(ncclInvalidUsage, "the device interface is not simulated");
}

NCCL_API(ncclResult_t, DevCommDestroy, ncclComm_t comm, const void *dev_comm)
{
	return sim_fail(ncclInvalidUsage, "the device interface is not simulated");
}
