/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every public host function of NCCL 2.28, one row each, as data: the look-up of the real
 *functions, the exported wrappers, the wrappers handed out by dlsym and the prototypes of the
 *recording code are all made from these rows; tests/e2e/agent-table holds them against an nccl.h.
 *
 *	F(return type, name, since, how, (parameters), (arguments))
 *	F0(return type, name, since, how)			functions without parameters
 *
 * since: the first release with the function, as NCCL_VERSION_CODE; older than anything supported:
 *0. how: RECORD = cw_impl_<name>() is written by hand in wrap_*.c; FORWARD = made by
 *wrap_forward.c.
 *
 * clang-format off: one line per function is what makes this a table.
 */
/* clang-format off */
#define CW_NCCL_FUNCTIONS(F, F0) \
	/* collectives: wrap_coll.c */ \
	F(ncclResult_t, ncclAllReduce, 0, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, count, datatype, op, comm, stream)) \
	F(ncclResult_t, ncclBroadcast, 0, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, count, datatype, root, comm, stream)) \
	F(ncclResult_t, ncclBcast, 0, RECORD, (void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream), (buff, count, datatype, root, comm, stream)) \
	F(ncclResult_t, ncclReduce, 0, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, count, datatype, op, root, comm, stream)) \
	F(ncclResult_t, ncclAllGather, 0, RECORD, (const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, sendcount, datatype, comm, stream)) \
	F(ncclResult_t, ncclReduceScatter, 0, RECORD, (const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, recvcount, datatype, op, comm, stream)) \
	F(ncclResult_t, ncclAlltoAll, 22803, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, count, datatype, comm, stream)) \
	F(ncclResult_t, ncclGather, 22803, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, count, datatype, root, comm, stream)) \
	F(ncclResult_t, ncclScatter, 22803, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream), (sendbuff, recvbuff, count, datatype, root, comm, stream)) \
	/* point to point: wrap_p2p.c */ \
	F(ncclResult_t, ncclSend, 0, RECORD, (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream), (sendbuff, count, datatype, peer, comm, stream)) \
	F(ncclResult_t, ncclRecv, 0, RECORD, (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream), (recvbuff, count, datatype, peer, comm, stream)) \
	/* groups: wrap_group.c */ \
	F0(ncclResult_t, ncclGroupStart, 0, RECORD) \
	F0(ncclResult_t, ncclGroupEnd, 0, RECORD) \
	F(ncclResult_t, ncclGroupSimulateEnd, 22200, RECORD, (ncclSimInfo_t *simInfo), (simInfo)) \
	/* making communicators: wrap_init.c */ \
	F(ncclResult_t, ncclCommInitRank, 0, RECORD, (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank), (comm, nranks, commId, rank)) \
	F(ncclResult_t, ncclCommInitRankConfig, 21400, RECORD, (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config), (comm, nranks, commId, rank, config)) \
	F(ncclResult_t, ncclCommInitRankScalable, 22300, RECORD, (ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds, ncclConfig_t *config), (newcomm, nranks, myrank, nId, commIds, config)) \
	F(ncclResult_t, ncclCommInitAll, 0, RECORD, (ncclComm_t *comm, int ndev, const int *devlist), (comm, ndev, devlist)) \
	F(ncclResult_t, ncclCommSplit, 21800, RECORD, (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config), (comm, color, key, newcomm, config)) \
	F(ncclResult_t, ncclCommShrink, 22700, RECORD, (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags), (comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags)) \
	/* state and end of communicators: wrap_comm.c */ \
	F(ncclResult_t, ncclCommFinalize, 21400, RECORD, (ncclComm_t comm), (comm)) \
	F(ncclResult_t, ncclCommDestroy, 0, RECORD, (ncclComm_t comm), (comm)) \
	F(ncclResult_t, ncclCommAbort, 0, RECORD, (ncclComm_t comm), (comm)) \
	F(ncclResult_t, ncclCommRevoke, 22807, RECORD, (ncclComm_t comm, int revokeFlags), (comm, revokeFlags)) \
	F(ncclResult_t, ncclCommGetAsyncError, 0, RECORD, (ncclComm_t comm, ncclResult_t *asyncError), (comm, asyncError)) \
	F(ncclResult_t, ncclCommWindowRegister, 22700, RECORD, (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags), (comm, buff, size, win, winFlags)) \
	F(ncclResult_t, ncclCommWindowDeregister, 22700, RECORD, (ncclComm_t comm, ncclWindow_t win), (comm, win)) \
	F(ncclResult_t, ncclDevCommCreate, 22803, RECORD, (ncclComm_t comm, const ncclDevCommRequirements_t *reqs, ncclDevComm_t *outDevComm), (comm, reqs, outDevComm)) \
	/* local to the rank: forwarded, not recorded */ \
	F(ncclResult_t, ncclGetUniqueId, 0, FORWARD, (ncclUniqueId *uniqueId), (uniqueId)) \
	F(ncclResult_t, ncclGetVersion, 0, FORWARD, (int *version), (version)) \
	F(const char *, ncclGetErrorString, 0, FORWARD, (ncclResult_t result), (result)) \
	F(const char *, ncclGetLastError, 21600, FORWARD, (ncclComm_t comm), (comm)) \
	F0(void, ncclResetDebugInit, 0, FORWARD) \
	F(ncclResult_t, ncclCommCount, 0, FORWARD, (const ncclComm_t comm, int *count), (comm, count)) \
	F(ncclResult_t, ncclCommCuDevice, 0, FORWARD, (const ncclComm_t comm, int *device), (comm, device)) \
	F(ncclResult_t, ncclCommUserRank, 0, FORWARD, (const ncclComm_t comm, int *rank), (comm, rank)) \
	F(ncclResult_t, ncclMemAlloc, 21900, FORWARD, (void **ptr, size_t size), (ptr, size)) \
	F(ncclResult_t, ncclMemFree, 21900, FORWARD, (void *ptr), (ptr)) \
	F(ncclResult_t, ncclCommRegister, 21900, FORWARD, (const ncclComm_t comm, void *buff, size_t size, void **handle), (comm, buff, size, handle)) \
	F(ncclResult_t, ncclCommDeregister, 21900, FORWARD, (const ncclComm_t comm, void *handle), (comm, handle)) \
	F(ncclResult_t, ncclRedOpCreatePreMulSum, 21100, FORWARD, (ncclRedOp_t *op, void *scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm), (op, scalar, datatype, residence, comm)) \
	F(ncclResult_t, ncclRedOpDestroy, 21100, FORWARD, (ncclRedOp_t op, ncclComm_t comm), (op, comm)) \
	/* device API, host side (nccl_device.h) */ \
	F(ncclResult_t, ncclDevCommDestroy, 22803, FORWARD, (ncclComm_t comm, const ncclDevComm_t *devComm), (comm, devComm)) \
	F(ncclTeam_t, ncclTeamWorld, 22803, FORWARD, (ncclComm_t comm), (comm)) \
	F(ncclTeam_t, ncclTeamLsa, 22803, FORWARD, (ncclComm_t comm), (comm)) \
	F(ncclTeam_t, ncclTeamRail, 22803, FORWARD, (ncclComm_t comm), (comm)) \
	F(int, ncclTeamRankToWorld, 22803, FORWARD, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank)) \
	F(int, ncclTeamRankToLsa, 22803, FORWARD, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank)) \
	F(ncclResult_t, ncclLsaBarrierCreateRequirement, 22803, FORWARD, (ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq), (team, nBarriers, outHandle, outReq)) \
	F(ncclResult_t, ncclGinBarrierCreateRequirement, 22803, FORWARD, (ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq), (comm, team, nBarriers, outHandle, outReq)) \
	F(int, ncclLLA2ACalcSlots, 22803, FORWARD, (int maxElts, int maxEltSize), (maxElts, maxEltSize)) \
	F(ncclResult_t, ncclLLA2ACreateRequirement, 22803, FORWARD, (int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle, ncclDevResourceRequirements_t *outReq), (nBlocks, nSlots, outHandle, outReq))
/* clang-format on */
