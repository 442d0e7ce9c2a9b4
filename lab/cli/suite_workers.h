/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs scenarios on several processors. Each of n forked processes iterates over all scenarios and
 * runs every n-th. The parent iterates over them as well and takes each outcome from the process
 * that ran it. So output and counts are the same, in the same order, as with one process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "lab/suite/outcome.h"

#define SUITE_WORKERS_MAX 64u

struct suite_workers {
	unsigned n;    /* 0 = the caller runs all of them itself */
	unsigned self; /* index of this worker; n = the parent */
	uint64_t next; /* number of the next scenario */
	FILE *pipes[SUITE_WORKERS_MAX];
	int pids[SUITE_WORKERS_MAX];
};

/*
 * Forks n workers. Returns in each of them, too: suite_workers_is_one() distinguishes them. 0 or
 * -errno; after an error no worker runs.
 */
int suite_workers_start(struct suite_workers *w, unsigned n);

static inline bool suite_workers_is_one(const struct suite_workers *w)
{
	return w->n && w->self < w->n;
}

/* Counts a scenario; in a worker: true if this worker runs it. */
bool suite_workers_take(struct suite_workers *w);
/* In the worker that ran it: sends the outcome. -EPIPE: the parent no longer reads. */
int suite_workers_put(struct suite_workers *w, int r, const struct cw_err *err,
		      const struct outcome *o);
/*
 * In the parent, after suite_workers_take(): receives the outcome. *ret and the result are those of
 * cw_watch(), or -EIO with a sentence: the worker has ended.
 */
int suite_workers_get(struct suite_workers *w, struct cw_err *err, struct outcome *ret);
/* In the parent: waits for all workers. In a worker: never returns. */
void suite_workers_end(struct suite_workers *w);
