/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions that enqueue work, and those for groups. We check arguments as NCCL does. A
 * mistake that one rank can see is an error; a difference between ranks is not.
 */
#include <stdlib.h>

#include "lab/sim/nccl_reduce.h"
#include "lab/sim/nccl_sim.h"

NCCL_API(ncclResult_t, GroupStart, void)
{
	sim_group_start();
	return ncclSuccess;
}

NCCL_API(ncclResult_t, GroupEnd, void)
{
	return sim_group_end(NULL);
}

NCCL_API(ncclResult_t, GroupSimulateEnd, ncclSimInfo_t *info)
{
	return sim_group_end(info);
}

static ncclResult_t check_task(struct sim_task *t)
{
	ncclResult_t result = sim_comm_check(t->comm);
	struct sim_redop *op;

	if (result != ncclSuccess)
		return result;
	if (t->comm->is_revoked)
		return sim_fail(ncclInvalidUsage, "the communicator was revoked");
	if (!sim_dtype_size(t->dtype))
		return sim_fail(ncclInvalidArgument, "unknown data type %d", (int)t->dtype);
	if (t->root < 0 || t->root >= t->comm->nranks)
		return sim_fail(ncclInvalidArgument, "root or peer %d of %d", t->root,
				t->comm->nranks);
	if (t->kind != SIM_ALL_REDUCE && t->kind != SIM_REDUCE && t->kind != SIM_REDUCE_SCATTER)
		return ncclSuccess;
	if (!sim_dtype_can_reduce(t->dtype))
		return sim_fail(ncclInvalidUsage, "reducing 8-bit floats is not simulated");
	if (t->op < ncclNumOps)
		return (int)t->op >= 0 ? ncclSuccess
				       : sim_fail(ncclInvalidArgument, "unknown operator");
	op = sim_comm_find_redop(t->comm, t->op);
	if (!op || op->dtype != t->dtype)
		return sim_fail(ncclInvalidArgument, "no such operator for this data type");
	t->scalar = op->scalar;
	return ncclSuccess;
}

/* Ends the group around one call. */
static ncclResult_t end_call(ncclComm_t comm, ncclResult_t result)
{
	ncclResult_t end;

	(void)sim_group_note(result);
	end = sim_group_end(NULL);
	if (result == ncclSuccess)
		result = end;
	/* Real NCCL, too, calls its own public function here. */
	if (result == ncclSuccess && comm && !comm->is_blocking)
		(void)ncclCommGetAsyncError(comm, &result);
	return result;
}

static ncclResult_t enqueue(struct sim_task task)
{
	ncclResult_t result;

	sim_group_start();
	result = check_task(&task);
	/* A collective without data does nothing; a send without data still counts. */
	if (result == ncclSuccess && (task.count > 0 || sim_is_p2p(&task)))
		result = sim_group_add(&task);
	return end_call(task.comm, result);
}

NCCL_API(ncclResult_t, AllReduce, const void *sendbuff, void *recvbuff, size_t count,
	 ncclDataType_t dtype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue((struct sim_task){ .kind = SIM_ALL_REDUCE,
					  .send = sendbuff,
					  .recv = recvbuff,
					  .count = count,
					  .dtype = dtype,
					  .op = op,
					  .comm = comm,
					  .stream = stream });
}

NCCL_API(ncclResult_t, Broadcast, const void *sendbuff, void *recvbuff, size_t count,
	 ncclDataType_t dtype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue((struct sim_task){ .kind = SIM_BROADCAST,
					  .send = sendbuff,
					  .recv = recvbuff,
					  .count = count,
					  .dtype = dtype,
					  .root = root,
					  .comm = comm,
					  .stream = stream });
}

NCCL_API(ncclResult_t, Bcast, void *buff, size_t count, ncclDataType_t dtype, int root,
	 ncclComm_t comm, cudaStream_t stream)
{
	return ncclBroadcast(buff, buff, count, dtype, root, comm, stream);
}

NCCL_API(ncclResult_t, Reduce, const void *sendbuff, void *recvbuff, size_t count,
	 ncclDataType_t dtype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue((struct sim_task){ .kind = SIM_REDUCE,
					  .send = sendbuff,
					  .recv = recvbuff,
					  .count = count,
					  .dtype = dtype,
					  .op = op,
					  .root = root,
					  .comm = comm,
					  .stream = stream });
}

NCCL_API(ncclResult_t, AllGather, const void *sendbuff, void *recvbuff, size_t sendcount,
	 ncclDataType_t dtype, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue((struct sim_task){ .kind = SIM_ALL_GATHER,
					  .send = sendbuff,
					  .recv = recvbuff,
					  .count = sendcount,
					  .dtype = dtype,
					  .comm = comm,
					  .stream = stream });
}

NCCL_API(ncclResult_t, ReduceScatter, const void *sendbuff, void *recvbuff, size_t recvcount,
	 ncclDataType_t dtype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue((struct sim_task){ .kind = SIM_REDUCE_SCATTER,
					  .send = sendbuff,
					  .recv = recvbuff,
					  .count = recvcount,
					  .dtype = dtype,
					  .op = op,
					  .comm = comm,
					  .stream = stream });
}

NCCL_API(ncclResult_t, Send, const void *sendbuff, size_t count, ncclDataType_t dtype, int peer,
	 ncclComm_t comm, cudaStream_t stream)
{
	return enqueue((struct sim_task){ .kind = SIM_SEND,
					  .send = sendbuff,
					  .count = count,
					  .dtype = dtype,
					  .root = peer,
					  .comm = comm,
					  .stream = stream });
}

NCCL_API(ncclResult_t, Recv, void *recvbuff, size_t count, ncclDataType_t dtype, int peer,
	 ncclComm_t comm, cudaStream_t stream)
{
	return enqueue((struct sim_task){ .kind = SIM_RECV,
					  .recv = recvbuff,
					  .count = count,
					  .dtype = dtype,
					  .root = peer,
					  .comm = comm,
					  .stream = stream });
}

enum exchange {
	ALL_TO_ALL,
	GATHER,
	SCATTER,
};

/*
 * Implements the collectives that NCCL composes of sends and receives. task.root: for
 * gather, scatter.
 */
static ncclResult_t enqueue_exchange(enum exchange what, struct sim_task task)
{
	const char *send = task.send;
	char *recv = task.recv;
	int root = task.root;
	ncclResult_t result;
	size_t bytes;

	task.kind = SIM_SEND;
	sim_group_start();
	result = check_task(&task);
	bytes = task.count * sim_dtype_size(task.dtype);
	for (int p = 0; result == ncclSuccess && task.count > 0 && p < task.comm->nranks; p++) {
		bool is_root = task.comm->rank == root;

		task.root = p;
		if (what == ALL_TO_ALL || (what == GATHER ? p == root : is_root)) {
			task.kind = SIM_SEND;
			task.send = send + (what == GATHER ? 0 : (size_t)p * bytes);
			result = sim_group_add(&task);
		}
		if (result == ncclSuccess &&
		    (what == ALL_TO_ALL || (what == GATHER ? is_root : p == root))) {
			task.kind = SIM_RECV;
			task.recv = recv + (what == SCATTER ? 0 : (size_t)p * bytes);
			result = sim_group_add(&task);
		}
	}
	return end_call(task.comm, result);
}

NCCL_API(ncclResult_t, AlltoAll, const void *sendbuff, void *recvbuff, size_t count,
	 ncclDataType_t dtype, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue_exchange(ALL_TO_ALL, (struct sim_task){ .send = sendbuff,
							       .recv = recvbuff,
							       .count = count,
							       .dtype = dtype,
							       .comm = comm,
							       .stream = stream });
}

NCCL_API(ncclResult_t, Gather, const void *sendbuff, void *recvbuff, size_t count,
	 ncclDataType_t dtype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue_exchange(GATHER, (struct sim_task){ .send = sendbuff,
							   .recv = recvbuff,
							   .count = count,
							   .dtype = dtype,
							   .root = root,
							   .comm = comm,
							   .stream = stream });
}

NCCL_API(ncclResult_t, Scatter, const void *sendbuff, void *recvbuff, size_t count,
	 ncclDataType_t dtype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue_exchange(SCATTER, (struct sim_task){ .send = sendbuff,
							    .recv = recvbuff,
							    .count = count,
							    .dtype = dtype,
							    .root = root,
							    .comm = comm,
							    .stream = stream });
}
