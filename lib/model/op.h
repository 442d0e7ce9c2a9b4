/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One NCCL call ("op") in the terms of docs/design/verdict.md#terms. The record reader produces
 * ops, messages carry them, the engine reasons about them, and reports print them. The enums'
 * numbers are written into flight records, messages and bundles: append only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/fact_list.h"

enum cw_op_kind {
	CW_OP_NONE = 0,

	/* collectives: counted by coll_seq */
	CW_OP_ALL_REDUCE = 1,
	CW_OP_BROADCAST = 2, /* ncclBroadcast and ncclBcast */
	CW_OP_REDUCE = 3,
	CW_OP_ALL_GATHER = 4,
	CW_OP_REDUCE_SCATTER = 5,
	CW_OP_ALL_TO_ALL = 6,
	CW_OP_GATHER = 7,
	CW_OP_SCATTER = 8,

	/* point to point: counted by p2p_seq per peer and direction */
	CW_OP_SEND = 16,
	CW_OP_RECV = 17,

	/* one-sided */
	CW_OP_PUT_SIGNAL = 24,
	CW_OP_SIGNAL = 25,
	CW_OP_WAIT_SIGNAL = 26,

	/* calls that block the host until other ranks arrive */
	CW_OP_COMM_INIT = 32,
	CW_OP_COMM_SPLIT = 33,
	CW_OP_COMM_SHRINK = 34,
	CW_OP_COMM_GROW = 35,
	CW_OP_COMM_FINALIZE = 36,
	CW_OP_COMM_DESTROY = 37,
	CW_OP_COMM_ABORT = 38,
	CW_OP_COMM_REVOKE = 39,
	CW_OP_WINDOW_REGISTER = 40,
	CW_OP_WINDOW_DEREGISTER = 41,
	CW_OP_DEV_COMM_CREATE = 42,
	CW_OP_GROUP_END = 43, /* the outermost ncclGroupEnd */

	CW_OP_GRAPH_LAUNCH = 48,

	CW_OP__MAX = 64,
};

/* The values of ncclDataType_t (nccl.h 2.28). */
enum cw_dtype {
	CW_DTYPE_INT8 = 0,
	CW_DTYPE_UINT8 = 1,
	CW_DTYPE_INT32 = 2,
	CW_DTYPE_UINT32 = 3,
	CW_DTYPE_INT64 = 4,
	CW_DTYPE_UINT64 = 5,
	CW_DTYPE_FP16 = 6,
	CW_DTYPE_FP32 = 7,
	CW_DTYPE_FP64 = 8,
	CW_DTYPE_BF16 = 9,
	CW_DTYPE_FP8_E4M3 = 10,
	CW_DTYPE_FP8_E5M2 = 11,
	CW_DTYPE__MAX,
	/*
	 * PyTorch's types that NCCL lacks. These types occur only in dumps of PyTorch; no agent
	 * records them.
	 */
	CW_DTYPE_FOREIGN = 64,
	CW_DTYPE_INT16 = CW_DTYPE_FOREIGN,
	CW_DTYPE_UINT16,
	CW_DTYPE_FP8_E4M3FNUZ,
	CW_DTYPE_FP8_E5M2FNUZ,
	CW_DTYPE_FP8_E8M0FNU,
	CW_DTYPE_FP4_E2M1X2, /* two elements in a byte; we count the byte as one element */
	CW_DTYPE_FOREIGN__MAX,
	CW_DTYPE_OTHER = 254, /* in a dump: a type with an unknown name */
	CW_DTYPE_NONE = 255,
};

/*
 * The values of ncclRedOp_t (nccl.h 2.28). We record every operator that the user made as
 * PREMULSUM.
 */
enum cw_redop {
	CW_REDOP_SUM = 0,
	CW_REDOP_PROD = 1,
	CW_REDOP_MAX = 2,
	CW_REDOP_MIN = 3,
	CW_REDOP_AVG = 4,
	CW_REDOP_PREMULSUM = 5,
	CW_REDOP__MAX,
	CW_REDOP_NONE = 255,
};

/* How far an op has come on the device. */
enum cw_progress {
	CW_PROGRESS_UNKNOWN = 0, /* not tracked; the op may have completed */
	CW_PROGRESS_ENQUEUED = 1,
	CW_PROGRESS_REACHED = 2, /* the stream has reached the op */
	CW_PROGRESS_COMPLETED = 3,
};

/* Bits of cw_op.flags. */
enum {
	CW_OPF_RETURNED = 1 << 0, /* the call has returned to the host */
	CW_OPF_GROUPED = 1 << 1,  /* called between ncclGroupStart and ncclGroupEnd */
	CW_OPF_QUEUED = 1 << 2,   /* in a group whose outermost ncclGroupEnd was not called yet */
	/* The op's group was simulated or failed, so the op was never launched. */
	CW_OPF_DROPPED = 1 << 3,
	/*
	 * Captured into a CUDA graph. The call itself launched nothing; later launches of the graph
	 * do.
	 */
	CW_OPF_CAPTURED = 1 << 4,
	CW_OPF_IN_PLACE = 1 << 5,
	/* Local to the rank, or empty; an op with this flag has no coll_seq. */
	CW_OPF_NO_COUNT = 1 << 6,
	CW_OPF_IN_PROGRESS = 1 << 7, /* the call returned ncclInProgress (non-blocking comm) */
	/*
	 * The op has no progress writes of its own. The progress writes of later ops cover this op.
	 */
	CW_OPF_UNTRACKED = 1 << 8,
};

#define CW_PEER_NONE (-1)

/* One op. Its times are on the timeline of its container: a record's reader, or a snapshot. */
struct cw_op {
	CW_SAME_FACTS(op_facts, CW_OP_FACTS);
	CW_OP_FACTS(CW_KEPT_FIELD)
};

/*
 * Returns the name of a kind: "all_reduce", "send", "comm_init", …. Returns "op-N" for an unknown
 * number, never NULL. Any thread.
 */
const char *cw_op_kind_name(unsigned kind);

/*
 * Returns the name of a kind for people: the name of cw_op_kind_name(), except for CW_OP_NONE. A
 * call of that kind is no longer recorded, and only its number is known. It is a "collective".
 */
const char *cw_op_kind_text(unsigned kind);

/*
 * Returns the name of a data type: "bf16", "fp32", "int64", …. Returns "none" for CW_DTYPE_NONE,
 * and "dtype-?" for an unknown type.
 */
const char *cw_dtype_name(unsigned dtype);

/* Returns the name of a reduction: "sum", "premulsum", …. Returns "none" for CW_REDOP_NONE. */
const char *cw_redop_name(unsigned redop);

/* Return the number of a name; -1 if the name is unknown. */
int cw_op_kind_from_name(const char *name);
int cw_dtype_from_name(const char *name);
int cw_redop_from_name(const char *name);

/* Returns the size of one element in bytes; 0 if the type is unknown. */
size_t cw_dtype_bytes(unsigned dtype);

static inline bool cw_op_is_collective(unsigned kind)
{
	return kind >= CW_OP_ALL_REDUCE && kind <= CW_OP_SCATTER;
}

static inline bool cw_op_is_p2p(unsigned kind)
{
	return kind == CW_OP_SEND || kind == CW_OP_RECV;
}

/*
 * True for collectives with a root. In these all other ranks send to the root, or receive from it.
 */
static inline bool cw_op_has_root(unsigned kind)
{
	return kind == CW_OP_BROADCAST || kind == CW_OP_REDUCE || kind == CW_OP_GATHER ||
	       kind == CW_OP_SCATTER;
}

static inline bool cw_op_has_redop(unsigned kind)
{
	return kind == CW_OP_ALL_REDUCE || kind == CW_OP_REDUCE || kind == CW_OP_REDUCE_SCATTER;
}

/*
 * True for calls such as init, split and finalize, which block the host until other ranks arrive.
 */
static inline bool cw_op_blocks_host(unsigned kind)
{
	return kind >= CW_OP_COMM_INIT && kind <= CW_OP_GROUP_END;
}

/*
 * Formats an op as one line for people. Examples: "all_reduce #40213 bf16 x 1048576 sum",
 * "broadcast #7 fp32 x 12 root 3", "send #4 int64 x 10 to 2". Writes at most len bytes including
 * the NUL. Returns buf.
 */
char *cw_op_format(const struct cw_op *op, char *buf, size_t len);
