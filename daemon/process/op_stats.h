/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals of one process's ops, by kind, communicator and size. They are the number of ops, their
 * bytes and the duration of their calls. If ops are timed, they include the time on the device.
 * Once a second we read the new ops of the flight record. We count each op once.
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
 * Rows per process. They suffice for 20 communicators with three kinds of ops each, all of one
 * size. The last row counts all ops without a row of their own.
 */
#define CW_OP_STATS_ROWS 64u

/*
 * The size classes, by the bytes of one rank: up to 4 KiB, 64 KiB, 1 MiB, 16 MiB, 256 MiB, and
 * more.
 */
enum { CW_OP_SIZES = 6 };
unsigned cw_op_stats_size_class(uint64_t bytes);
/* Returns the name of a size class: "<= 4 KiB", …, "> 256 MiB". */
const char *cw_op_stats_size_name(unsigned size_class);

struct cw_op_sums {
	uint64_t ops, bytes, call_ns;
	uint64_t timed, timed_bytes, device_ns, device_max_ns;
	struct cw_durations calls;
};

struct cw_op_row {
	uint64_t comm_id; /* 0 in the last row, which counts all other ops */
	uint32_t nranks;
	uint8_t kind, size_class;
	char comm_name[32];
	struct cw_op_sums sums;
};

struct cw_op_stats {
	struct cw_op_row *rows; /* NULL = no op yet */
	size_t n_rows;
	uint64_t op_cursor, time_cursor, lost;
	int64_t sampled_ns;
};

/* Upper bounds of the buckets for durations, in nanoseconds; the last bucket has no bound. */
enum { CW_OP_BUCKETS = 13 };
extern const uint64_t cw_op_buckets_ns[CW_OP_BUCKETS - 1];

/* Sums of one kind and size. The counts are not cumulative: each count belongs to one bucket. */
struct cw_op_sized {
	uint64_t bytes, call_ns, timed_bytes, device_ns;
	uint64_t calls[CW_OP_BUCKETS];  /* calls, by their duration on the host */
	uint64_t device[CW_OP_BUCKETS]; /* timed ops, by their duration on the device */
};

/*
 * Totals of all processes of a node, including dead and removed ones. The totals therefore only
 * grow.
 */
struct cw_op_totals {
	struct cw_op_sums kinds[CW_OP__MAX];
	struct cw_op_sized sized[CW_OP__MAX][CW_OP_SIZES];
	uint64_t lost; /* ops that the agent overwrote before we read them */
};

void cw_op_stats_fini(struct cw_op_stats *s);
/*
 * Reads the new ops of the record. Call this after each refresh of the record. It reads at most
 * once a second.
 */
void cw_op_stats_sample(struct cw_op_stats *s, const struct cw_record *record, int64_t now_ns,
			struct cw_op_totals *totals);
