/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios on several processors: each of n forked processes goes through all scenarios and runs
 * every n-th, the parent goes through them as well and takes each outcome from the process that
 * has it. So whatever is printed and counted is the same, in the same order, as with one process.
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
	unsigned self; /* of a worker: which one; n = the parent */
	uint64_t next; /* the number of the scenario that comes next */
	FILE *pipes[SUITE_WORKERS_MAX];
	int pids[SUITE_WORKERS_MAX];
};

/*
 * Forks n workers. Returns in each of them, too: suite_workers_is_one() tells. 0 or -errno; then
 * none runs.
 */
int suite_workers_start(struct suite_workers *w, unsigned n);

static inline bool suite_workers_is_one(const struct suite_workers *w)
{
	return w->n && w->self < w->n;
}

/* Counts a scenario; in a worker: it is this one's. */
bool suite_workers_take(struct suite_workers *w);
/* In the worker that ran it: hands over how it ended. -EPIPE: nobody listens any more. */
int suite_workers_put(struct suite_workers *w, int r, const struct cw_err *err,
		      const struct outcome *o);
/*
 * In the parent, after suite_workers_take(): what it was. *ret as of cw_watch(); what that
 * returned, or -EIO with a sentence: the worker has ended.
 */
int suite_workers_get(struct suite_workers *w, struct cw_err *err, struct outcome *ret);
/* In the parent: waits for all of them. In a worker: never returns. */
void suite_workers_end(struct suite_workers *w);
