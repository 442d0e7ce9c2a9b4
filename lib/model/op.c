/* SPDX-License-Identifier: Apache-2.0 */
#include "model/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The names of kinds in reports, bundles and JSON: append only, never rename. */
static const char *const kind_names[CW_OP__MAX] = {
	[CW_OP_NONE] = "none",
	[CW_OP_ALL_REDUCE] = "all_reduce",
	[CW_OP_BROADCAST] = "broadcast",
	[CW_OP_REDUCE] = "reduce",
	[CW_OP_ALL_GATHER] = "all_gather",
	[CW_OP_REDUCE_SCATTER] = "reduce_scatter",
	[CW_OP_ALL_TO_ALL] = "all_to_all",
	[CW_OP_GATHER] = "gather",
	[CW_OP_SCATTER] = "scatter",
	[CW_OP_SEND] = "send",
	[CW_OP_RECV] = "recv",
	[CW_OP_PUT_SIGNAL] = "put_signal",
	[CW_OP_SIGNAL] = "signal",
	[CW_OP_WAIT_SIGNAL] = "wait_signal",
	[CW_OP_COMM_INIT] = "comm_init",
	[CW_OP_COMM_SPLIT] = "comm_split",
	[CW_OP_COMM_SHRINK] = "comm_shrink",
	[CW_OP_COMM_GROW] = "comm_grow",
	[CW_OP_COMM_FINALIZE] = "comm_finalize",
	[CW_OP_COMM_DESTROY] = "comm_destroy",
	[CW_OP_COMM_ABORT] = "comm_abort",
	[CW_OP_COMM_REVOKE] = "comm_revoke",
	[CW_OP_WINDOW_REGISTER] = "window_register",
	[CW_OP_WINDOW_DEREGISTER] = "window_deregister",
	[CW_OP_DEV_COMM_CREATE] = "dev_comm_create",
	[CW_OP_GROUP_END] = "group_end",
	[CW_OP_GRAPH_LAUNCH] = "graph_launch",
};

/*
 * The names "op-0" … "op-259" of unknown kinds. They are constants, because cw_op_kind_name() has
 * neither a buffer nor thread-local state.
 */
#define OP_TEN(d)                                                                                  \
	"op-" #d "0", "op-" #d "1", "op-" #d "2", "op-" #d "3", "op-" #d "4", "op-" #d "5",        \
		"op-" #d "6", "op-" #d "7", "op-" #d "8", "op-" #d "9"

static const char *const number_names[] = {
	OP_TEN(),   OP_TEN(1),  OP_TEN(2),  OP_TEN(3),  OP_TEN(4),  OP_TEN(5),  OP_TEN(6),
	OP_TEN(7),  OP_TEN(8),  OP_TEN(9),  OP_TEN(10), OP_TEN(11), OP_TEN(12), OP_TEN(13),
	OP_TEN(14), OP_TEN(15), OP_TEN(16), OP_TEN(17), OP_TEN(18), OP_TEN(19), OP_TEN(20),
	OP_TEN(21), OP_TEN(22), OP_TEN(23), OP_TEN(24), OP_TEN(25),
};

struct dtype {
	const char *name;
	size_t bytes;
};

static const struct dtype dtypes[CW_DTYPE__MAX] = {
	[CW_DTYPE_INT8] = { "int8", 1 },         [CW_DTYPE_UINT8] = { "uint8", 1 },
	[CW_DTYPE_INT32] = { "int32", 4 },       [CW_DTYPE_UINT32] = { "uint32", 4 },
	[CW_DTYPE_INT64] = { "int64", 8 },       [CW_DTYPE_UINT64] = { "uint64", 8 },
	[CW_DTYPE_FP16] = { "fp16", 2 },         [CW_DTYPE_FP32] = { "fp32", 4 },
	[CW_DTYPE_FP64] = { "fp64", 8 },         [CW_DTYPE_BF16] = { "bf16", 2 },
	[CW_DTYPE_FP8_E4M3] = { "fp8_e4m3", 1 }, [CW_DTYPE_FP8_E5M2] = { "fp8_e5m2", 1 },
};

static const struct dtype foreign_dtypes[] = {
	{ "int16", 2 },        { "uint16", 2 },   { "fp8_e4m3fnuz", 1 },
	{ "fp8_e5m2fnuz", 1 }, { "fp8_e8m0", 1 }, { "fp4_e2m1x2", 1 },
};

_Static_assert(sizeof(foreign_dtypes) / sizeof(*foreign_dtypes) ==
		       CW_DTYPE_FOREIGN__MAX - CW_DTYPE_FOREIGN,
	       "in the order of enum cw_dtype");

static const char *const redop_names[CW_REDOP__MAX] = {
	[CW_REDOP_SUM] = "sum", [CW_REDOP_PROD] = "prod", [CW_REDOP_MAX] = "max",
	[CW_REDOP_MIN] = "min", [CW_REDOP_AVG] = "avg",   [CW_REDOP_PREMULSUM] = "premulsum",
};

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

const char *cw_op_kind_name(unsigned kind)
{
	if (kind < CW_OP__MAX && kind_names[kind])
		return kind_names[kind];
	if (kind < ARRAY_LEN(number_names))
		return number_names[kind];
	return "op-?";
}

const char *cw_op_kind_text(unsigned kind)
{
	return kind == CW_OP_NONE ? "collective" : cw_op_kind_name(kind);
}

/* Returns the row of a data type; NULL if the type is unknown. */
static const struct dtype *dtype_of(unsigned dtype)
{
	if (dtype < CW_DTYPE__MAX)
		return &dtypes[dtype];
	return dtype >= CW_DTYPE_FOREIGN && dtype < CW_DTYPE_FOREIGN__MAX
		       ? &foreign_dtypes[dtype - CW_DTYPE_FOREIGN]
		       : NULL;
}

const char *cw_dtype_name(unsigned dtype)
{
	const struct dtype *of = dtype_of(dtype);

	if (of)
		return of->name;
	return dtype == CW_DTYPE_NONE ? "none" : dtype == CW_DTYPE_OTHER ? "other" : "dtype-?";
}

const char *cw_redop_name(unsigned redop)
{
	if (redop < CW_REDOP__MAX)
		return redop_names[redop];
	return redop == CW_REDOP_NONE ? "none" : "redop-?";
}

int cw_op_kind_from_name(const char *name)
{
	for (unsigned i = 0; i < CW_OP__MAX; i++)
		if (kind_names[i] && strcmp(kind_names[i], name) == 0)
			return (int)i;
	/*
	 * A kind of a newer agent has a name like "op-77" from cw_op_kind_name(). We parse such
	 * names too.
	 */
	for (unsigned i = 0; i < 256; i++)
		if (strcmp(number_names[i], name) == 0)
			return (int)i;
	return -1;
}

int cw_dtype_from_name(const char *name)
{
	for (unsigned i = 0; i < CW_DTYPE_FOREIGN__MAX; i++)
		if (dtype_of(i) && strcmp(dtype_of(i)->name, name) == 0)
			return (int)i;
	if (strcmp(name, "other") == 0)
		return CW_DTYPE_OTHER;
	return strcmp(name, "none") == 0 ? CW_DTYPE_NONE : -1;
}

int cw_redop_from_name(const char *name)
{
	for (unsigned i = 0; i < CW_REDOP__MAX; i++)
		if (strcmp(redop_names[i], name) == 0)
			return (int)i;
	return strcmp(name, "none") == 0 ? CW_REDOP_NONE : -1;
}

size_t cw_dtype_bytes(unsigned dtype)
{
	return dtype_of(dtype) ? dtype_of(dtype)->bytes : 0;
}

static bool moves_data(unsigned kind)
{
	return cw_op_is_collective(kind) || cw_op_is_p2p(kind) || kind == CW_OP_PUT_SIGNAL;
}

static const char *peer_word(unsigned kind)
{
	return kind == CW_OP_RECV || kind == CW_OP_WAIT_SIGNAL ? "from" : "to";
}

char *cw_op_format(const struct cw_op *op, char *buf, size_t len)
{
	uint64_t seq = cw_op_is_p2p(op->kind) ? op->p2p_seq : op->coll_seq;
	char number[24] = "", data[48] = "", redop[24] = "", root[24] = "", peer[24] = "";

	if (seq)
		(void)snprintf(number, sizeof(number), " #%" PRIu64, seq);
	if (moves_data(op->kind))
		(void)snprintf(data, sizeof(data), " %s x %" PRIu64, cw_dtype_name(op->dtype),
			       op->count);
	if (cw_op_has_redop(op->kind) && op->redop != CW_REDOP_NONE)
		(void)snprintf(redop, sizeof(redop), " %s", cw_redop_name(op->redop));
	if (op->root != CW_PEER_NONE)
		(void)snprintf(root, sizeof(root), " root %" PRId32, op->root);
	if (op->peer != CW_PEER_NONE)
		(void)snprintf(peer, sizeof(peer), " %s %" PRId32, peer_word(op->kind), op->peer);
	(void)snprintf(buf, len, "%s%s%s%s%s%s", cw_op_kind_text(op->kind), number, data, redop,
		       root, peer);
	return buf;
}
