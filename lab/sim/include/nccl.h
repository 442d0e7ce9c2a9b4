/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL 2.28's public interface, written from its ABI. With it, tests and example programs build on
 * machines without NVIDIA's packages. A program compiled with this header runs on real NCCL, and
 * one compiled with NVIDIA's header runs on the simulated NCCL. NVIDIA's NCCL manual describes the
 * functions.
 */
#pragma once

#include <limits.h>
#include <stddef.h>

#include "cuda_runtime_api.h"

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(X, Y, Z)                                                                      \
	(((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))

#define NCCL_COMM_NULL NULL
#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;

typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclNumResults = 8,
} ncclResult_t;

typedef struct ncclConfig_v22800 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                    \
	{                                                                                          \
		.size = sizeof(ncclConfig_t), .magic = 0xcafebeef,                                 \
		.version = NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH),                       \
		.blocking = NCCL_CONFIG_UNDEF_INT, .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,        \
		.minCTAs = NCCL_CONFIG_UNDEF_INT, .maxCTAs = NCCL_CONFIG_UNDEF_INT,                \
		.netName = NCCL_CONFIG_UNDEF_PTR, .splitShare = NCCL_CONFIG_UNDEF_INT,             \
		.trafficClass = NCCL_CONFIG_UNDEF_INT, .commName = NCCL_CONFIG_UNDEF_PTR,          \
		.collnetEnable = NCCL_CONFIG_UNDEF_INT, .CTAPolicy = NCCL_CONFIG_UNDEF_INT,        \
		.shrinkShare = NCCL_CONFIG_UNDEF_INT, .nvlsCTAs = NCCL_CONFIG_UNDEF_INT,           \
		.nChannelsPerNetPeer = NCCL_CONFIG_UNDEF_INT,                                      \
		.nvlinkCentricSched = NCCL_CONFIG_UNDEF_INT,                                       \
	}

typedef struct ncclSimInfo_v22200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                                  \
	{                                                                                          \
		.size = sizeof(ncclSimInfo_t), .magic = 0x74685283,                                \
		.version = NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH),                       \
		.estimatedTime = NCCL_UNDEF_FLOAT,                                                 \
	}

typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
	ncclMaxRedOp = 0x7fffffff,
} ncclRedOp_t;

typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12,
} ncclDataType_t;

typedef enum {
	ncclScalarDevice = 0,
	ncclScalarHostImmediate = 1,
} ncclScalarResidence_t;

/* Every function has two names. ncclX is weak, so that a tool can replace it and call pncclX. */
#define NCCL_FN(ret, name, ...)                                                                    \
	ret nccl##name(__VA_ARGS__);                                                               \
	ret pnccl##name(__VA_ARGS__)

NCCL_FN(ncclResult_t, GetVersion, int *version);
NCCL_FN(ncclResult_t, GetUniqueId, ncclUniqueId *id);
NCCL_FN(const char *, GetErrorString, ncclResult_t result);
NCCL_FN(const char *, GetLastError, ncclComm_t comm);
NCCL_FN(void, ResetDebugInit, void);

NCCL_FN(ncclResult_t, CommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
NCCL_FN(ncclResult_t, CommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
	ncclConfig_t *config);
NCCL_FN(ncclResult_t, CommInitRankScalable, ncclComm_t *comm, int nranks, int rank, int num_ids,
	ncclUniqueId *ids, ncclConfig_t *config);
NCCL_FN(ncclResult_t, CommInitAll, ncclComm_t *comms, int ndev, const int *devlist);
NCCL_FN(ncclResult_t, CommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
	ncclConfig_t *config);
NCCL_FN(ncclResult_t, CommShrink, ncclComm_t comm, int *exclude, int num_exclude,
	ncclComm_t *newcomm, ncclConfig_t *config, int flags);
NCCL_FN(ncclResult_t, CommFinalize, ncclComm_t comm);
NCCL_FN(ncclResult_t, CommDestroy, ncclComm_t comm);
NCCL_FN(ncclResult_t, CommAbort, ncclComm_t comm);
NCCL_FN(ncclResult_t, CommRevoke, ncclComm_t comm, int flags);
NCCL_FN(ncclResult_t, CommGetAsyncError, ncclComm_t comm, ncclResult_t *error);
NCCL_FN(ncclResult_t, CommCount, ncclComm_t comm, int *count);
NCCL_FN(ncclResult_t, CommCuDevice, ncclComm_t comm, int *device);
NCCL_FN(ncclResult_t, CommUserRank, ncclComm_t comm, int *rank);

NCCL_FN(ncclResult_t, MemAlloc, void **ptr, size_t size);
NCCL_FN(ncclResult_t, MemFree, void *ptr);
NCCL_FN(ncclResult_t, CommRegister, ncclComm_t comm, void *buff, size_t size, void **handle);
NCCL_FN(ncclResult_t, CommDeregister, ncclComm_t comm, void *handle);
NCCL_FN(ncclResult_t, CommWindowRegister, ncclComm_t comm, void *buff, size_t size,
	ncclWindow_t *win, int flags);
NCCL_FN(ncclResult_t, CommWindowDeregister, ncclComm_t comm, ncclWindow_t win);
NCCL_FN(ncclResult_t, RedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar, ncclDataType_t dtype,
	ncclScalarResidence_t residence, ncclComm_t comm);
NCCL_FN(ncclResult_t, RedOpDestroy, ncclRedOp_t op, ncclComm_t comm);

NCCL_FN(ncclResult_t, AllReduce, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t dtype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, Broadcast, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t dtype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, Bcast, void *buff, size_t count, ncclDataType_t dtype, int root,
	ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, Reduce, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t dtype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, AllGather, const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t dtype, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, ReduceScatter, const void *sendbuff, void *recvbuff, size_t recvcount,
	ncclDataType_t dtype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, AlltoAll, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t dtype, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, Gather, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t dtype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, Scatter, const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t dtype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, Send, const void *sendbuff, size_t count, ncclDataType_t dtype, int peer,
	ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, Recv, void *recvbuff, size_t count, ncclDataType_t dtype, int peer,
	ncclComm_t comm, cudaStream_t stream);
NCCL_FN(ncclResult_t, GroupStart, void);
NCCL_FN(ncclResult_t, GroupEnd, void);
NCCL_FN(ncclResult_t, GroupSimulateEnd, ncclSimInfo_t *info);

#undef NCCL_FN
