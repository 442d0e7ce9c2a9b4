/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals of one process's ops, by kind, communicator and size: the number of ops, their bytes, the
 * duration of their calls and, if ops are timed, their time on the device. Once a second we read
 * new ops from the flight record, each op once.
 *
 * Loop thread only; reads memory, does not block.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/process/durations.h"
#include "model/op.h"
#include "record/record_reader.h"

/*
 * The rows per process. They suffice for 20 communicators with three kinds each, of one size. The
 * last row counts all further ops.
 */
#define CW_OP_STATS_ROWS 64u

/* The classes of one rank's bytes: up to 4 KiB, 64 KiB, 1 MiB, 16 MiB, 256 MiB, more. */
enum { CW_OP_SIZES = 6 };
unsigned cw_op_stats_size_class(uint64_t bytes);
/* Returns "<= 4 KiB", …, "> 256 MiB". */
const char *cw_op_stats_size_name(unsigned size_class);

struct cw_op_sums {
	uint64_t ops, bytes, call_ns;
	uint64_t timed, timed_bytes, device_ns, device_max_ns;
	struct cw_durations calls;
};

struct cw_op_row {
	uint64_t comm_id; /* 0 in the last row, which is for further ops */
	uint32_t nranks;
	uint8_t kind, size_class;
	char comm_name[32];
	struct cw_op_sums sums;
};

struct cw_op_stats {
	struct cw_op_row *rows; /* allocated at the first op */
	size_t n_rows;
	uint64_t op_cursor, time_cursor, lost;
	int64_t sampled_ns;
};

/* Upper bounds of the duration buckets, in nanoseconds; the last bucket has no bound. */
enum { CW_OP_BUCKETS = 13 };
extern const uint64_t cw_op_buckets_ns[CW_OP_BUCKETS - 1];

/* Sums of one kind and size. Each bucket counts alone; the counts are not cumulative. */
struct cw_op_sized {
	uint64_t bytes, call_ns, timed_bytes, device_ns;
	uint64_t calls[CW_OP_BUCKETS];  /* host durations of calls */
	uint64_t device[CW_OP_BUCKETS]; /* device durations of timed ops */
};

/* Totals of all processes of a node, dead and removed ones included, so they only grow. */
struct cw_op_totals {
	struct cw_op_sums kinds[CW_OP__MAX];
	struct cw_op_sized sized[CW_OP__MAX][CW_OP_SIZES];
	uint64_t lost; /* ops overwritten before we read them */
};

void cw_op_stats_fini(struct cw_op_stats *s);
/* Call it after each refresh of the record. It works at most once a second. */
void cw_op_stats_sample(struct cw_op_stats *s, const struct cw_record *record, int64_t now_ns,
			struct cw_op_totals *totals);
