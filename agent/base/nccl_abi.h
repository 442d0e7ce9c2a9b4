/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NCCL's binary interface that the agent needs. With it the agent builds without the
 * headers of NCCL or CUDA, and one build serves every NCCL version. We declare enums as int: both
 * have the same size and register in the C ABI of x86-64 and aarch64.
 * tests/e2e/agent/test_agent_table.py compares the table of functions with a real nccl.h.
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

typedef int ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
typedef int ncclScalarResidence_t;
typedef int ncclCommMemStat_t;
typedef int ncclCftTeamMode_t;
typedef uint32_t ncclCftLeId;
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct ncclParamHandle *ncclParamHandle_t;
typedef struct CUstream_st *cudaStream_t;

enum {
	ncclSuccess = 0,
	ncclInvalidUsage = 5,
	ncclInProgress = 7,
};

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_MAGIC 0xcafebeefu
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_BUILTIN_REDOPS 5

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/* The first three fields never move. `size` says which later fields exist (nccl.h since 2.14). */
typedef struct cw_nccl_config {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;     /* 2.27 */
	const char *commName; /* 2.27 */
} ncclConfig_t;

/* The agent never looks inside these types; it only forwards pointers to them. */
typedef struct cw_nccl_sim_info ncclSimInfo_t;
typedef struct cw_nccl_dev_comm_requirements ncclDevCommRequirements_t;
typedef struct cw_nccl_dev_comm ncclDevComm_t;
typedef struct cw_nccl_dev_resource_requirements ncclDevResourceRequirements_t;
typedef struct cw_nccl_gin_barrier_handle ncclGinBarrierHandle_t;
typedef struct cw_nccl_lsa_barrier_handle ncclLsaBarrierHandle_t;
typedef struct cw_nccl_lla2a_handle ncclLLA2AHandle_t;
typedef struct cw_nccl_comm_properties ncclCommProperties_t;
typedef struct cw_nccl_coll_config ncclCollConfig_t;
typedef struct cw_nccl_encryption_config ncclEncryptionConfig_t;

typedef struct cw_nccl_team {
	int nRanks, rank, stride;
} ncclTeam_t;

typedef struct cw_nccl_multimem_handle {
	void *mcBasePtr;
} ncclMultimemHandle_t;

typedef struct cw_nccl_wait_signal_desc {
	int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;
