/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one rank's flight record to its baseline: ops as they settle, each with the summaries of
 * what went in and came out.
 *
 * A record keeps the last 120 summaries, and what a device wrote comes later than the call it is
 * about. So a running rank's record is read again and again, sooner than it can be written over
 * (cw_baseline_collect_pause_ns()), and an op waits for its summaries; the rank knows nothing of
 * it. What was written over all the same is counted.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "numerics/collect/baseline_file.h"
#include "record/record_reader.h"

struct cw_baseline_collector;

/* Owns record from then on, in any case; copies dir, where the file will lie. */
int cw_baseline_collector_new(struct cw_record *record, const char *dir,
			      struct cw_baseline_collector **ret);
/*
 * The rank waits for what has not been read yet, where its agent is told of this directory
 * (COLLWATCH_COMPLETE) and knows of such readers. Before the first poll. 0 or -errno.
 */
int cw_baseline_collector_keep_all(struct cw_baseline_collector *c, const char *dir);
/*
 * Reads what is new. now_ns: any clock that does not go back. 0, or -errno for good: -EEXIST when
 * the directory has a baseline of this rank already.
 */
int cw_baseline_collector_poll(struct cw_baseline_collector *c, int64_t now_ns);
/* When to call that again at the latest. */
int64_t cw_baseline_collector_pause_ns(const struct cw_baseline_collector *c);

struct cw_baseline_collected {
	int32_t rank;
	uint32_t pid;
	uint32_t nranks;    /* of its largest communicator … */
	bool has_several;   /* … or of one, in which it has several members */
	bool has_summaries; /* the agent looked at tensors at all */
	bool waited;        /* for them to be read */
	uint64_t n_ops;     /* rows; 0 = there is no file */
	uint64_t counters[CW_BASELINE_COUNTERS];
};

/*
 * Writes what still waits for summaries, ends the file and frees it. Takes NULL. 0 or -errno of
 * what failed first; ret (NULL allowed) is filled in any case.
 */
int cw_baseline_collector_free(struct cw_baseline_collector *c, struct cw_baseline_collected *ret);

/* All of it for a record in a file. err has no path. */
int cw_baseline_collect_file(const char *path, const char *dir, struct cw_baseline_collected *ret,
			     struct cw_err *err);
