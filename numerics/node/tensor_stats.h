/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a job's numbers while it runs, and detects news. It repeatedly runs the judge of
 * `collwatch numerics` (numerics/judge/numerics.h) over the ranks whose records are on this node
 * (docs/design/summaries.md#while-the-job-runs). Pure.
 *
 * There are two kinds of news. One is the first rank to feed NaN or infinity. We report it once per
 * job, unless loss scaling explains it. Before, we wait until all ranks have had time to record
 * their first bad number, and until the next step shows the scaling. The other is numbers that will
 * soon leave their type. We report them when the trend begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "digest/extension.h"
#include "record/record_reader.h"

/*
 * Delay between the first bad number and the report, in ns. A rank records its first bad number
 * when its device reaches the number. After this delay, a step of most jobs is over.
 */
#define CW_TENSOR_STATS_SETTLE_NS INT64_C(5000000000)
/* Minimum interval between two reports about numbers that grow, stop and grow again, in ns. */
#define CW_TENSOR_STATS_AGAIN_NS INT64_C(600000000000)

/* The state of one job. Zeroed when the job starts. */
struct cw_tensor_stats {
	struct cw_extension_finding first, headroom;
	bool is_near; /* at the last evaluation, numbers were about to leave their type */
	/* time since which there are bad numbers that we have not reported; 0 = none */
	int64_t bad_ns;
	uint64_t n_ops; /* calls of all ranks, at the last evaluation */
	bool is_still;  /* no call was made between the last two evaluations */
};

enum {
	CW_TENSOR_STATS_NEWS_FIRST = 1,
	CW_TENSOR_STATS_NEWS_HEADROOM = 2,
};

/*
 * Evaluates the job. records: the refreshed records of the job's ranks on this node. Reads nothing
 * if no rank has made a call since the evaluation before last. Returns the news as
 * CW_TENSOR_STATS_NEWS_*, or -ENOMEM.
 */
int cw_tensor_stats_update(struct cw_tensor_stats *n, struct cw_record *const *records,
			   uint32_t n_records, int64_t now_ns);
