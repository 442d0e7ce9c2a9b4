/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every public host function of NCCL 2.14 to 2.32 has one row in this table. We generate from the
 * rows: the look-up of the real functions, the exported wrappers, the wrappers for dlsym, and the
 * prototypes of the recording code. Each signature is the one in the header of its NCCL version.
 * tests/e2e/agent/test_agent_table.py compares the rows with each nccl.h that it gets.
 *
 *	F(return type, name, since, how, (parameters), (arguments))
 *	F0(return type, name, since, how)			functions without parameters
 *
 * since: the NCCL_VERSION_CODE of the first release that we found to declare the function; 0 =
 * every supported release declares it. how: with RECORD, wrap_*.c contains a handwritten
 * cw_impl_<name>(); with FORWARD, wrap_forward.c generates this function.
 *
 * The table omits functions that no C header declares. A program's calls of these go straight to
 * NCCL: ncclGinInboxA2ACreateRequirement, ncclGinOutboxCreateRequirement,
 * ncclResetDebugInitInternal, and seven ncclParam* functions of C++ that only 2.30.3 has
 * (tests/e2e/agent/test_agent_table.py names them).
 *
 * We turn clang-format off to keep one line per function.
 */
#define CW_NCCL_NEWEST 23299 /* a newer NCCL may have functions that this table lacks */

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
	/* the same with a configuration per call (2.31): wrap_coll.c */ \
	F(ncclResult_t, ncclAllReduceConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, count, datatype, op, comm, stream, config)) \
	F(ncclResult_t, ncclBroadcastConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, count, datatype, root, comm, stream, config)) \
	F(ncclResult_t, ncclReduceConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, count, datatype, op, root, comm, stream, config)) \
	F(ncclResult_t, ncclAllGatherConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, sendcount, datatype, comm, stream, config)) \
	F(ncclResult_t, ncclReduceScatterConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, recvcount, datatype, op, comm, stream, config)) \
	F(ncclResult_t, ncclAlltoAllConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, count, datatype, comm, stream, config)) \
	F(ncclResult_t, ncclGatherConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, count, datatype, root, comm, stream, config)) \
	F(ncclResult_t, ncclScatterConfig, 23102, RECORD, (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config), (sendbuff, recvbuff, count, datatype, root, comm, stream, config)) \
	/* point to point: wrap_coll.c */ \
	F(ncclResult_t, ncclSend, 0, RECORD, (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream), (sendbuff, count, datatype, peer, comm, stream)) \
	F(ncclResult_t, ncclRecv, 0, RECORD, (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream), (recvbuff, count, datatype, peer, comm, stream)) \
	/* one-sided (2.29): wrap_coll.c */ \
	F(ncclResult_t, ncclPutSignal, 22902, RECORD, (const void *localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream), (localbuff, count, datatype, peer, peerWin, peerWinOffset, sigIdx, ctx, flags, comm, stream)) \
	F(ncclResult_t, ncclSignal, 22902, RECORD, (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream), (peer, sigIdx, ctx, flags, comm, stream)) \
	F(ncclResult_t, ncclWaitSignal, 22902, RECORD, (int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream), (nDesc, signalDescs, comm, stream)) \
	/* groups: wrap_group.c */ \
	F0(ncclResult_t, ncclGroupStart, 0, RECORD) \
	F0(ncclResult_t, ncclGroupEnd, 0, RECORD) \
	F(ncclResult_t, ncclGroupSimulateEnd, 22200, RECORD, (ncclSimInfo_t *simInfo), (simInfo)) \
	/* making communicators: wrap_comm_create.c */ \
	F(ncclResult_t, ncclCommInitRank, 0, RECORD, (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank), (comm, nranks, commId, rank)) \
	F(ncclResult_t, ncclCommInitRankConfig, 21400, RECORD, (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config), (comm, nranks, commId, rank, config)) \
	F(ncclResult_t, ncclCommInitRankScalable, 22300, RECORD, (ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds, ncclConfig_t *config), (newcomm, nranks, myrank, nId, commIds, config)) \
	F(ncclResult_t, ncclCommInitAll, 0, RECORD, (ncclComm_t *comm, int ndev, const int *devlist), (comm, ndev, devlist)) \
	F(ncclResult_t, ncclCommSplit, 21800, RECORD, (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config), (comm, color, key, newcomm, config)) \
	F(ncclResult_t, ncclCommShrink, 22700, RECORD, (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags), (comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags)) \
	F(ncclResult_t, ncclCommGrow, 22902, RECORD, (ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm, ncclConfig_t *config), (comm, nRanks, uniqueId, rank, newcomm, config)) \
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
	F(ncclResult_t, ncclCommGetUniqueId, 22902, FORWARD, (ncclComm_t comm, ncclUniqueId *uniqueId), (comm, uniqueId)) \
	F(const char *, ncclGetErrorString, 0, FORWARD, (ncclResult_t result), (result)) \
	F(const char *, ncclGetLastError, 0, FORWARD, (ncclComm_t comm), (comm)) \
	F0(void, ncclResetDebugInit, 22403, FORWARD) \
	F(ncclResult_t, ncclCommCount, 0, FORWARD, (const ncclComm_t comm, int *count), (comm, count)) \
	F(ncclResult_t, ncclCommCuDevice, 0, FORWARD, (const ncclComm_t comm, int *device), (comm, device)) \
	F(ncclResult_t, ncclCommUserRank, 0, FORWARD, (const ncclComm_t comm, int *rank), (comm, rank)) \
	F(ncclResult_t, ncclMemAlloc, 21900, FORWARD, (void **ptr, size_t size), (ptr, size)) \
	F(ncclResult_t, ncclMemFree, 21900, FORWARD, (void *ptr), (ptr)) \
	F(ncclResult_t, ncclCommRegister, 21900, FORWARD, (const ncclComm_t comm, void *buff, size_t size, void **handle), (comm, buff, size, handle)) \
	F(ncclResult_t, ncclCommDeregister, 21900, FORWARD, (const ncclComm_t comm, void *handle), (comm, handle)) \
	F(ncclResult_t, ncclCommSuspend, 22907, FORWARD, (ncclComm_t comm, int flags), (comm, flags)) \
	F(ncclResult_t, ncclCommResume, 22907, FORWARD, (ncclComm_t comm), (comm)) \
	F(ncclResult_t, ncclCommMemStats, 22907, FORWARD, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value), (comm, stat, value)) \
	F(ncclResult_t, ncclWinGetUserPtr, 22902, FORWARD, (ncclComm_t comm, ncclWindow_t win, void **outUserPtr), (comm, win, outUserPtr)) \
	F(ncclResult_t, ncclSetEncryption, 23203, FORWARD, (const ncclEncryptionConfig_t *config), (config)) \
	F(ncclResult_t, ncclRedOpCreatePreMulSum, 21100, FORWARD, (ncclRedOp_t *op, void *scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm), (op, scalar, datatype, residence, comm)) \
	F(ncclResult_t, ncclRedOpDestroy, 21100, FORWARD, (ncclRedOp_t op, ncclComm_t comm), (op, comm)) \
	/* parameters: exported since 2.30.3, in nccl.h since 2.30.7 */ \
	F(ncclResult_t, ncclParamBind, 23007, FORWARD, (ncclParamHandle_t *out, const char *key), (out, key)) \
	F(ncclResult_t, ncclParamGetI8, 23007, FORWARD, (ncclParamHandle_t h, int8_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetI16, 23007, FORWARD, (ncclParamHandle_t h, int16_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetI32, 23007, FORWARD, (ncclParamHandle_t h, int32_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetI64, 23007, FORWARD, (ncclParamHandle_t h, int64_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetU8, 23007, FORWARD, (ncclParamHandle_t h, uint8_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetU16, 23007, FORWARD, (ncclParamHandle_t h, uint16_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetU32, 23007, FORWARD, (ncclParamHandle_t h, uint32_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetU64, 23007, FORWARD, (ncclParamHandle_t h, uint64_t *out), (h, out)) \
	F(ncclResult_t, ncclParamGetStr, 23007, FORWARD, (ncclParamHandle_t h, const char **out), (h, out)) \
	F(ncclResult_t, ncclParamGet, 23007, FORWARD, (ncclParamHandle_t h, void *out, int maxLen, int *len), (h, out, maxLen, len)) \
	F(ncclResult_t, ncclParamGetParameter, 23007, FORWARD, (const char *key, const char **value, int *valueLen), (key, value, valueLen)) \
	F(ncclResult_t, ncclParamGetAllParameterKeys, 23007, FORWARD, (const char ***table, int *tableLen), (table, tableLen)) \
	F0(void, ncclParamDumpAll, 23007, FORWARD) \
	/* device API, host side (nccl_device.h) */ \
	F(ncclResult_t, ncclDevCommDestroy, 22803, FORWARD, (ncclComm_t comm, const ncclDevComm_t *devComm), (comm, devComm)) \
	F(ncclTeam_t, ncclTeamWorld, 22803, FORWARD, (ncclComm_t comm), (comm)) \
	F(ncclTeam_t, ncclTeamLsa, 22803, FORWARD, (ncclComm_t comm), (comm)) \
	F(ncclTeam_t, ncclTeamRail, 22803, FORWARD, (ncclComm_t comm), (comm)) \
	F(int, ncclTeamRankToWorld, 22803, FORWARD, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank)) \
	F(int, ncclTeamRankToLsa, 22803, FORWARD, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank)) \
	F(ncclResult_t, ncclLsaBarrierCreateRequirement, 22803, FORWARD, (ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq), (team, nBarriers, outHandle, outReq)) \
	F(ncclResult_t, ncclGinBarrierCreateRequirement, 22807, FORWARD, (ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq), (comm, team, nBarriers, outHandle, outReq)) \
	F(int, ncclLLA2ACalcSlots, 22803, FORWARD, (int maxElts, int maxEltSize), (maxElts, maxEltSize)) \
	F(ncclResult_t, ncclLLA2ACreateRequirement, 22803, FORWARD, (int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle, ncclDevResourceRequirements_t *outReq), (nBlocks, nSlots, outHandle, outReq)) \
	F(ncclResult_t, ncclCommQueryProperties, 22902, FORWARD, (ncclComm_t comm, ncclCommProperties_t *props), (comm, props)) \
	F(ncclResult_t, ncclGetLsaDevicePointer, 22902, FORWARD, (ncclWindow_t window, size_t offset, int lsaRank, void **outPtr), (window, offset, lsaRank, outPtr)) \
	F(ncclResult_t, ncclGetLsaMultimemDevicePointer, 22902, FORWARD, (ncclWindow_t window, size_t offset, void **outPtr), (window, offset, outPtr)) \
	F(ncclResult_t, ncclGetMultimemDevicePointer, 22902, FORWARD, (ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void **outPtr), (window, offset, multimem, outPtr)) \
	F(ncclResult_t, ncclGetPeerDevicePointer, 22902, FORWARD, (ncclWindow_t window, size_t offset, int peer, void **outPtr), (window, offset, peer, outPtr)) \
	F(ncclTeam_t, ncclTeamCft, 23102, FORWARD, (ncclComm_t comm, ncclCftTeamMode_t mode), (comm, mode)) \
	F(ncclTeam_t, ncclTeamCftMultimem, 23102, FORWARD, (ncclComm_t comm), (comm)) \
	F(ncclResult_t, ncclGetCftDeviceLeInfo, 23102, FORWARD, (ncclWindow_t window, size_t offset, int peerCft, ncclTeam_t cftTeam, ncclCftLeId *leId, size_t *leOffset), (window, offset, peerCft, cftTeam, leId, leOffset)) \
	F(ncclResult_t, ncclGetMultimemDeviceLeInfo, 23102, FORWARD, (ncclWindow_t window, size_t offset, ncclCftLeId *leId, size_t *leOffset), (window, offset, leId, leOffset)) \
	F(ncclResult_t, ncclGetPeerDeviceLeInfo, 23102, FORWARD, (ncclWindow_t window, size_t offset, int peerWorld, ncclCftLeId *leId, size_t *leOffset), (window, offset, peerWorld, leId, leOffset))
/* clang-format on */
