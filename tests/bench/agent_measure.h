/* SPDX-License-Identifier: Apache-2.0 */
/* agent-bench's measurements: the time of an NCCL call with the agent, less the time without it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCHES 401
#define BATCH_CALLS 1000

/*
 * Repetitions of each measurement: many for a figure, few to check that we measure the right thing.
 */
struct extent {
	unsigned batches, singles, colds, steps;
};

extern struct extent extent;

void measure_seldom(void);

/* One call, or some: i counts from 0 in every batch. */
typedef void (*call_fn)(unsigned i, bool with_agent);

struct result {
	double median; /* ns, of the difference */
	double p999;   /* ns, of single calls with the agent, less what reading the clock takes */
	double ratio;  /* with to without */
	double load;   /* ns, of one load of a cold page in the same rounds; cold calls only */
	uint64_t ops;  /* that the calls with the agent made */
};

double now_ns(void);

/* Sorts v. */
double percentile(double *v, size_t n, double p);

/* Nanoseconds of a call, BATCH_CALLS of them after each other. */
double batch(call_fn call, bool with_agent);
double p999_of(call_fn call);

/* The costs of one op, when a call makes ops of them. Sorts. */
struct result summary(double *with, double *without, size_t n, double p999, unsigned ops);

struct result measure(call_fn call, unsigned ops);

/*
 * The same with every line of 32 MiB written before each call. The same rounds measure one load of
 * a page that neither caches nor TLB know: it calls nothing, and nothing behind it begins before
 * the load is done.
 */
struct result measure_cold(call_fn call);

/* Pins the calling thread to the nth processor it may use. */
bool pin(unsigned nth);
