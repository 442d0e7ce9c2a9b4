/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives and point to point: every op that goes onto a stream. They differ in their
 * parameters and in the description of the op; the rest is guard, record, call, record.
 */
#include "agent/ops.h"
#include "agent/wrap.h"

/* RECORDED(name, (parameters), (arguments), fields of struct cw_op_desc …) */
#define RECORDED(name, params, args, ...)                                                          \
	ncclResult_t cw_impl_##name CW_WITH params                                                 \
	{                                                                                          \
		const struct cw_op_desc desc = { __VA_ARGS__, .comm = comm, .stream = stream };    \
		struct cw_op_call call;                                                            \
		ncclResult_t r;                                                                    \
                                                                                                   \
		if (!real->name)                                                                   \
			return ncclInvalidUsage;                                                   \
		if (!cw_op_enter(&call, real, caller, &desc))                                      \
			return real->name args;                                                    \
		r = real->name args;                                                               \
		cw_op_leave(&call, r);                                                             \
		return r;                                                                          \
	}

/* clang-format off */
RECORDED(ncclAllReduce,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, count, datatype, op, comm, stream),
	 .kind = CW_OP_ALL_REDUCE, .dtype = datatype, .redop = op, .root_or_peer = CW_PEER_NONE,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclBroadcast,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  int root, ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, count, datatype, root, comm, stream),
	 .kind = CW_OP_BROADCAST, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = root,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclBcast,
	 (void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
	  cudaStream_t stream),
	 (buff, count, datatype, root, comm, stream),
	 .kind = CW_OP_BROADCAST, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = root,
	 .count = count, .send = buff, .recv = buff)

RECORDED(ncclReduce,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, count, datatype, op, root, comm, stream),
	 .kind = CW_OP_REDUCE, .dtype = datatype, .redop = op, .root_or_peer = root,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclAllGather,
	 (const void *sendbuff, void *recvbuff, size_t sendcount,
	  ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, sendcount, datatype, comm, stream),
	 .kind = CW_OP_ALL_GATHER, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = CW_PEER_NONE,
	 .count = sendcount, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclReduceScatter,
	 (const void *sendbuff, void *recvbuff, size_t recvcount,
	  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, recvcount, datatype, op, comm, stream),
	 .kind = CW_OP_REDUCE_SCATTER, .dtype = datatype, .redop = op, .root_or_peer = CW_PEER_NONE,
	 .count = recvcount, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclAlltoAll,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, count, datatype, comm, stream),
	 .kind = CW_OP_ALL_TO_ALL, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = CW_PEER_NONE,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclGather,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  int root, ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, count, datatype, root, comm, stream),
	 .kind = CW_OP_GATHER, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = root,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclScatter,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  int root, ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, recvbuff, count, datatype, root, comm, stream),
	 .kind = CW_OP_SCATTER, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = root,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclSend,
	 (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
	  ncclComm_t comm, cudaStream_t stream),
	 (sendbuff, count, datatype, peer, comm, stream),
	 .kind = CW_OP_SEND, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = peer,
	 .count = count, .send = sendbuff, .recv = NULL)

RECORDED(ncclRecv,
	 (void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	  ncclComm_t comm, cudaStream_t stream),
	 (recvbuff, count, datatype, peer, comm, stream),
	 .kind = CW_OP_RECV, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = peer,
	 .count = count, .send = NULL, .recv = recvbuff)
/* clang-format on */
