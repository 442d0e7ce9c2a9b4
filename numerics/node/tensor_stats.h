/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a job's numbers while it runs, and detects news. It runs the judge of `collwatch
 * numerics` (numerics/judge/numerics.h) repeatedly over the ranks whose records are on this node
 * (docs/design/summaries.md#while-the-job-runs). Pure.
 *
 * There are two kinds of news. The first rank to feed NaN or infinity: once per job, after its
 * ranks have had time to note theirs, and if loss scaling, which the next step reveals, does not
 * explain it. And numbers that will soon leave their type, when the trend begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_reader.h"

/*
 * Delay between the first bad number and the report. Ranks note theirs when their devices get
 * there, and a step of most jobs is over by then.
 */
#define CW_TENSOR_STATS_SETTLE_NS INT64_C(5000000000)
/* Minimum interval of reports about numbers that stopped growing and began again. */
#define CW_TENSOR_STATS_AGAIN_NS INT64_C(600000000000)

struct cw_tensor_stats_finding {
	int64_t seen_ns; /* 0 = never */
	char text[512];
};

/* State of one job; zeroed at its start. */
struct cw_tensor_stats {
	struct cw_tensor_stats_finding first, headroom;
	bool is_near;   /* at the last evaluation, numbers were about to leave their type */
	int64_t bad_ns; /* since when there are unreported bad ones; 0 = none */
	uint64_t n_ops; /* calls of all ranks, at the last evaluation */
	bool is_still;  /* … and at the one before */
};

enum {
	CW_TENSOR_STATS_NEWS_FIRST = 1,
	CW_TENSOR_STATS_NEWS_HEADROOM = 2,
};

/*
 * records: those of the job's ranks on this node, refreshed. If no rank made a call since the
 * evaluation before last, we read nothing. Returns the news as CW_TENSOR_STATS_NEWS_*; -ENOMEM.
 */
int cw_tensor_stats_update(struct cw_tensor_stats *n, struct cw_record *const *records,
			   uint32_t n_records, int64_t now_ns);
