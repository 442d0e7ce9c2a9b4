/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of all ops that run on a stream: collectives, point-to-point and one-sided ops. They
 * differ only in their parameters and in the description of the op. Each wrapper checks whether to
 * record, records the call, calls NCCL, and records the return.
 */
#include "agent/hooks/wrap.h"
#include "agent/ops/hot.h"
#include "agent/ops/ops.h"

#define DESCS_MAX 64 /* limits the work per call */

/* Returns the peer of a wait; CW_PEER_NONE unless all descriptors name the same peer. */
static int only_peer(int count, const ncclWaitSignalDesc_t *descs)
{
	if (count < 1 || count > DESCS_MAX || !descs)
		return CW_PEER_NONE;
	for (int i = 1; i < count; i++) {
		if (descs[i].peer != descs[0].peer)
			return CW_PEER_NONE;
	}
	return descs[0].peer;
}

/*
 * Returns the number of signals that a wait expects; 0 if it has more than DESCS_MAX descriptors.
 */
static uint64_t signals(int count, const ncclWaitSignalDesc_t *descs)
{
	uint64_t sum = 0;

	if (count > DESCS_MAX || !descs)
		return 0;
	for (int i = 0; i < count; i++)
		sum += descs[i].opCnt > 0 ? (uint64_t)descs[i].opCnt : 0;
	return sum;
}

/*
 * RECORDED(name, (parameters), (arguments), fields of struct cw_op_desc …) defines the wrapper of
 * one function.
 */
#define RECORDED(name, params, args, ...)                                                          \
	CW_HOT ncclResult_t cw_impl_##name CW_WITH params                                          \
	{                                                                                          \
		const struct cw_op_desc desc = { __VA_ARGS__, .comm = comm, .stream = stream };    \
		struct cw_op_call call;                                                            \
		ncclResult_t r;                                                                    \
                                                                                                   \
		if (cw_likely(cw_agent_is_armed()))                                                \
			cw_hot_fetch();                                                            \
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

/*
 * We record calls with a configuration like the calls without one, because a configuration is only
 * a hint to NCCL.
 */
RECORDED(ncclAllReduceConfig,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, count, datatype, op, comm, stream, config),
	 .kind = CW_OP_ALL_REDUCE, .dtype = datatype, .redop = op, .root_or_peer = CW_PEER_NONE,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclBroadcastConfig,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, count, datatype, root, comm, stream, config),
	 .kind = CW_OP_BROADCAST, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = root,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclReduceConfig,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, count, datatype, op, root, comm, stream, config),
	 .kind = CW_OP_REDUCE, .dtype = datatype, .redop = op, .root_or_peer = root,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclAllGatherConfig,
	 (const void *sendbuff, void *recvbuff, size_t sendcount,
	  ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, sendcount, datatype, comm, stream, config),
	 .kind = CW_OP_ALL_GATHER, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = CW_PEER_NONE,
	 .count = sendcount, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclReduceScatterConfig,
	 (const void *sendbuff, void *recvbuff, size_t recvcount,
	  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, recvcount, datatype, op, comm, stream, config),
	 .kind = CW_OP_REDUCE_SCATTER, .dtype = datatype, .redop = op, .root_or_peer = CW_PEER_NONE,
	 .count = recvcount, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclAlltoAllConfig,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, count, datatype, comm, stream, config),
	 .kind = CW_OP_ALL_TO_ALL, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = CW_PEER_NONE,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclGatherConfig,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, count, datatype, root, comm, stream, config),
	 .kind = CW_OP_GATHER, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = root,
	 .count = count, .send = sendbuff, .recv = recvbuff)

RECORDED(ncclScatterConfig,
	 (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	  int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config),
	 (sendbuff, recvbuff, count, datatype, root, comm, stream, config),
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

RECORDED(ncclPutSignal,
	 (const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
	  ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
	  ncclComm_t comm, cudaStream_t stream),
	 (localbuff, count, datatype, peer, peerWin, peerWinOffset, sigIdx, ctx, flags, comm,
	  stream),
	 .kind = CW_OP_PUT_SIGNAL, .dtype = datatype, .redop = CW_REDOP_NONE, .root_or_peer = peer,
	 .count = count, .send = localbuff, .recv = NULL)

RECORDED(ncclSignal,
	 (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream),
	 (peer, sigIdx, ctx, flags, comm, stream),
	 .kind = CW_OP_SIGNAL, .dtype = CW_DTYPE_NONE, .redop = CW_REDOP_NONE, .root_or_peer = peer,
	 .count = 1, .send = NULL, .recv = NULL)

RECORDED(ncclWaitSignal,
	 (int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream),
	 (nDesc, signalDescs, comm, stream),
	 .kind = CW_OP_WAIT_SIGNAL, .dtype = CW_DTYPE_NONE, .redop = CW_REDOP_NONE,
	 .root_or_peer = only_peer(nDesc, signalDescs), .count = signals(nDesc, signalDescs),
	 .send = NULL, .recv = NULL)
/* clang-format on */
