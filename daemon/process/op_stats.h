/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one process's ops add up to, by kind, communicator and size: how many, how many bytes, how
 * long their calls took and, where ops are timed, the device. Read out of the flight record once a
 * second, each op once.
 *
 * Loop thread only; reads memory, does not block.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/durations.h"
#include "model/op.h"
#include "record/record_reader.h"

/* Rows of a process: 20 communicators, three kinds each on one size. More are counted in one. */
#define CW_OP_STATS_ROWS 64u

/* Bytes of one rank's part: up to 4 KiB, 64 KiB, 1 MiB, 16 MiB, 256 MiB, more. */
enum { CW_OP_SIZES = 6 };
unsigned cw_op_stats_size_class(uint64_t bytes);
/* "<= 4 KiB", …, "> 256 MiB" */
const char *cw_op_stats_size_name(unsigned size_class);

struct cw_op_sums {
	uint64_t ops, bytes, call_ns;
	uint64_t timed, timed_bytes, device_ns, device_max_ns;
	struct cw_durations calls;
};

struct cw_op_row {
	uint64_t comm_id; /* 0 in the row for what found no place */
	uint32_t nranks;
	uint8_t kind, size_class;
	char comm_name[32];
	struct cw_op_sums sums;
};

struct cw_op_stats {
	struct cw_op_row *rows; /* made when the first op is seen */
	size_t n_rows;
	uint64_t op_cursor, time_cursor, lost;
	int64_t sampled_ns;
};

/* Upper bounds of a time's bucket, in nanoseconds; the last bucket has all that is longer. */
enum { CW_OP_BUCKETS = 13 };
extern const uint64_t cw_op_buckets_ns[CW_OP_BUCKETS - 1];

/* Of one kind and size. Counts are by bucket, each alone, not summed up. */
struct cw_op_sized {
	uint64_t bytes, call_ns, timed_bytes, device_ns;
	uint64_t calls[CW_OP_BUCKETS];  /* how long calls took on the host */
	uint64_t device[CW_OP_BUCKETS]; /* the timed ones, on the device */
};

/* Of all processes of a node, dead and removed ones included: what only grows. */
struct cw_op_totals {
	struct cw_op_sums kinds[CW_OP__MAX];
	struct cw_op_sized sized[CW_OP__MAX][CW_OP_SIZES];
	uint64_t lost; /* overwritten before they were read */
};

void cw_op_stats_fini(struct cw_op_stats *s);
/* After a refresh of the record; at most once a second does something. */
void cw_op_stats_sample(struct cw_op_stats *s, const struct cw_record *record, int64_t now_ns,
			struct cw_op_totals *totals);
