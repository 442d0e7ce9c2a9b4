/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts one rank's flight record into its baseline: each settled op, with the summaries of its
 * inputs and outputs.
 *
 * A record keeps the last 120 summaries, and a device writes a summary later than its call. So we
 * read a running rank's record again and again, before the rank can overwrite a summary
 * (cw_baseline_collector_pause_ns()). Ops wait in the collector for their summaries. The rank does
 * not wait. We count the summaries that the rank overwrote before we read them.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "numerics/collect/baseline_file.h"
#include "record/record_reader.h"

struct cw_baseline_collector;

/*
 * Makes a collector. Takes ownership of record, also after an error. Copies dir, the directory for
 * the file. Returns 0 or -errno.
 */
int cw_baseline_collector_new(struct cw_record *record, const char *dir,
			      struct cw_baseline_collector **ret);
/*
 * Makes the rank wait for this reader, so that it overwrites no unread summary. The agent must know
 * this directory (COLLWATCH_COMPLETE) and support such readers. Call it before the first poll.
 * Returns 0 or -errno.
 */
int cw_baseline_collector_keep_all(struct cw_baseline_collector *c, const char *dir);
/*
 * Reads new data of the record. now_ns: any clock that does not go back. Returns 0 or -errno, which
 * is permanent; -EEXIST: the directory already has a baseline of this rank.
 */
int cw_baseline_collector_poll(struct cw_baseline_collector *c, int64_t now_ns);
/* Returns the longest allowed pause before the next poll, in ns. */
int64_t cw_baseline_collector_pause_ns(const struct cw_baseline_collector *c);

struct cw_baseline_collected {
	int32_t rank;
	uint32_t pid;
	uint32_t nranks;    /* size of the rank's largest communicator */
	bool has_several;   /* some communicator has several members in this process */
	bool has_summaries; /* the agent sampled tensors */
	bool waited;        /* the rank waited for this reader */
	uint64_t n_ops;     /* number of rows; 0 = there is no file */
	uint64_t counters[CW_BASELINE_COUNTERS];
};

/*
 * Writes the ops that still wait for summaries, finishes the file and frees c. Accepts NULL.
 * Returns 0 or the -errno of the first failure. Fills *ret in any case, unless ret is NULL.
 */
int cw_baseline_collector_free(struct cw_baseline_collector *c, struct cw_baseline_collected *ret);

/* Makes the baseline of a record in a file. err contains no path. Returns 0 or -errno. */
int cw_baseline_collect_file(const char *path, const char *dir, struct cw_baseline_collected *ret,
			     struct cw_err *err);
