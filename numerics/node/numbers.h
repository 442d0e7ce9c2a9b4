/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job's numbers show while it runs, and what of that is news: the judge of `collwatch
 * numerics` (numerics/judge/numerics.h), asked again and again about those ranks whose records
 * are here (docs/design/summaries.md#while-the-job-runs). Pure.
 *
 * Two things are told. Who was first to feed NaN or infinity: once for a job, when its ranks have
 * had time to note theirs, and loss scaling, which is known by the step behind it, does not explain
 * it. And numbers that will leave their type before long, when they begin to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_reader.h"

/*
 * From the first bad number on until somebody is called the first. Ranks note theirs when their
 * devices get there, and a step of most jobs is over by then.
 */
#define CW_NUMBERS_SETTLE_NS INT64_C(5000000000)
/* Numbers of a job that have stopped growing and begin again are told at most so often. */
#define CW_NUMBERS_AGAIN_NS INT64_C(600000000000)

struct cw_numbers_told {
	int64_t seen_ns; /* 0 = never */
	char text[512];
};

/* One job's. Zeroed at its start. */
struct cw_numbers {
	struct cw_numbers_told first, headroom;
	bool is_near;   /* at the last look, numbers were about to leave their type */
	int64_t bad_ns; /* since when there are bad ones that are not told yet; 0 = none */
	uint64_t n_ops; /* calls of all ranks, at the last look */
	bool is_still;  /* … and at the one before */
};

enum {
	CW_NUMBERS_NEWS_FIRST = 1,
	CW_NUMBERS_NEWS_HEADROOM = 2,
};

/*
 * records: of the job's ranks that are here, refreshed. Where nobody called anything since two
 * looks ago, nothing is read. Return: which of CW_NUMBERS_NEWS_* are news; -ENOMEM.
 */
int cw_numbers_look(struct cw_numbers *n, struct cw_record *const *records, uint32_t n_records,
		    int64_t now_ns);
