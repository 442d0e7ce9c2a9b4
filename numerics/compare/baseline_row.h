/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One op of one rank, in 64 bytes: its arguments, and the statistics of its inputs and outputs. A
 * baseline contains one row per op, both in memory and in files (numerics/collect/baseline_file.h
 * describes the other units of files).
 *
 * A statistic is the upper 48 bits of a double, rounded. It keeps the whole range with an error of
 * 2^-37, which is far below the tolerance of a comparison. Only completely sampled tensors have
 * statistics. The sampled share of other tensors depends on the communicator's id, which differs in
 * each run.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum cw_baseline_side { CW_BASELINE_IN, CW_BASELINE_OUT, CW_BASELINE_SIDES };

enum cw_baseline_value {
	CW_BASELINE_ABSMAX,
	CW_BASELINE_MEAN,
	CW_BASELINE_L2,
	CW_BASELINE_VALUES,
};

#define CW_BASELINE_UNIT_ROW 1u
#define CW_BASELINE_UNIT_MASK 0x0fu
/* The flag is set if the agent sampled the whole tensor. */
#define CW_BASELINE_HAS_IN 0x10u
#define CW_BASELINE_HAS_OUT 0x20u

/*
 * The kind of a row for a call of a torch operator, which enum cw_op_kind does not contain. Its
 * call site is the module and the operator. Its root is the number of input elements, at most
 * INT32_MAX. Its count is the number of output elements. Its statistics cover all tensors of a side
 * together. nonfinite is the number of tensors with a NaN or infinity, which the other statistics
 * omit.
 */
#define CW_BASELINE_KIND_OPERATOR 0u

#define CW_BASELINE_NONFINITE_MAX 255u /* largest value; it means this many or more */
#define CW_BASELINE_COUNT_MAX ((UINT64_C(1) << 48) - 1)

struct cw_baseline_row {
	uint8_t unit; /* CW_BASELINE_UNIT_ROW, with a flag for each side that has statistics */
	uint8_t kind, dtype, redop;
	uint32_t seq;         /* coll_seq, or p2p_seq; from 1 */
	uint32_t step_plus_1; /* the program's step number; 0 = unknown */
	uint16_t comm;        /* index into the communicators of its run */
	uint16_t site;        /* index + 1 into the call sites of its run; 0 = unknown */
	int32_t root_or_peer; /* -1 = none */
	uint16_t count[3];    /* number of elements as NCCL counts them; low part first */
	uint8_t nonfinite[CW_BASELINE_SIDES];
	uint16_t values[CW_BASELINE_SIDES][CW_BASELINE_VALUES][3]; /* low part first */
};
_Static_assert(sizeof(struct cw_baseline_row) == 64, "a row's size is what files promise");

static inline bool cw_baseline_row_has(const struct cw_baseline_row *row,
				       enum cw_baseline_side side)
{
	return row->unit & (side == CW_BASELINE_IN ? CW_BASELINE_HAS_IN : CW_BASELINE_HAS_OUT);
}

static inline bool cw_baseline_row_is_operator(const struct cw_baseline_row *row)
{
	return row->kind == CW_BASELINE_KIND_OPERATOR;
}

static inline uint64_t cw_baseline_row_count(const struct cw_baseline_row *row)
{
	return row->count[0] | (uint64_t)row->count[1] << 16 | (uint64_t)row->count[2] << 32;
}

static inline void cw_baseline_row_set_count(struct cw_baseline_row *row, uint64_t count)
{
	for (int i = 0; i < 3; i++)
		row->count[i] = (uint16_t)(count >> (16 * i));
}

static inline double cw_baseline_row_value(const struct cw_baseline_row *row,
					   enum cw_baseline_side side, enum cw_baseline_value value)
{
	const uint16_t *from = row->values[side][value];
	uint64_t bits = (uint64_t)from[0] << 16 | (uint64_t)from[1] << 32 | (uint64_t)from[2] << 48;
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline void cw_baseline_row_set_value(struct cw_baseline_row *row,
					     enum cw_baseline_side side,
					     enum cw_baseline_value value, double v)
{
	uint64_t bits;

	if (isnan(v))
		v = NAN; /* other payloads could round to infinity */
	memcpy(&bits, &v, sizeof(bits));
	if ((bits & INT64_MAX) < UINT64_C(0x7fefffffffff8000)) /* larger ones round to infinity */
		bits += 0x8000;
	for (int i = 0; i < 3; i++)
		row->values[side][value][i] = (uint16_t)(bits >> (16 + 16 * i));
}
