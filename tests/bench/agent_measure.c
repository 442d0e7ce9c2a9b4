/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/agent_measure.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#define SINGLES 200000
#define COLD_CALLS 301
#define COLD_BYTES (32u << 20)
/* Each in a page table of its own, as those of a call are: code, data, the thread's, the record's.
 */
#define STRIDE ((2u << 20) + 4096u)
#define PAGES 512
#define STEPS 2001

struct extent extent = { BATCHES, SINGLES, COLD_CALLS, STEPS };

void measure_seldom(void)
{
	extent = (struct extent){ BATCHES / 20, SINGLES / 100, COLD_CALLS / 10, STEPS / 20 };
}

double now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/*
 * A clock that brings nothing into caches and TLB: that of the C library lies on half a dozen
 * pages, and an agent that read it, too, would find them there.
 */
#ifdef __x86_64__
static uint64_t ticks(void)
{
	uint64_t t;

	_mm_lfence();
	t = __rdtsc();
	_mm_lfence();
	return t;
}
#else
static uint64_t ticks(void)
{
	return (uint64_t)now_ns();
}
#endif

static double ticks_per_ns(void)
{
	static double known;
	double start = now_ns();
	uint64_t from = ticks();

	while (!known && now_ns() - start < 5e7)
		;
	if (!known)
		known = (double)(ticks() - from) / (now_ns() - start);
	return known;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double percentile(double *v, size_t n, double p)
{
	qsort(v, n, sizeof(*v), compare);
	return v[(size_t)((double)(n - 1) * p)];
}

double batch(call_fn call, bool with_agent)
{
	double start = now_ns();

	for (unsigned i = 0; i < BATCH_CALLS; i++)
		call(i, with_agent);
	return (now_ns() - start) / BATCH_CALLS;
}

double p999_of(call_fn call)
{
	static double single[SINGLES], clock_cost[SINGLES];

	for (unsigned i = 0; i < extent.singles; i++) {
		double a = now_ns(), b = now_ns();

		call(i, true);
		single[i] = now_ns() - b;
		clock_cost[i] = b - a;
	}
	return percentile(single, extent.singles, 0.999) -
	       percentile(clock_cost, extent.singles, 0.5);
}

struct result summary(double *with, double *without, size_t n, double p999, unsigned ops)
{
	double a = percentile(with, n, 0.5), b = percentile(without, n, 0.5);

	return (struct result){ .median = (a - b) / ops,
				.p999 = p999 / ops,
				.ratio = b > 0 ? a / b : 0 };
}

struct result measure(call_fn call, unsigned ops)
{
	static double with[BATCHES], without[BATCHES];
	struct result r;

	for (unsigned i = 0; i < extent.batches; i++) {
		without[i] = batch(call, false);
		with[i] = batch(call, true);
	}
	r = summary(with, without, extent.batches, p999_of(call), ops);
	r.ops = ((uint64_t)extent.batches * BATCH_CALLS + extent.singles) * ops;
	return r;
}

/* ---- cold ---- */

static void touch(void)
{
	static volatile char memory[COLD_BYTES];

	for (size_t i = 0; i < COLD_BYTES; i += 64)
		memory[i] = (char)(memory[i] + 1);
}

static double once_cold(call_fn call, unsigned i, bool with)
{
	uint64_t start;

	touch();
	start = ticks();
	call(i, with);
	return (double)(ticks() - start);
}

static const volatile char *pages;

static void load_page(unsigned i, bool with)
{
	/* Neither the prefetcher nor a line of eight page table entries covers these steps. */
	const volatile char *at = pages + (size_t)i * 37 % PAGES * STRIDE;

	/* Both variants wait for the address; `with` adds the load. */
	__asm__ volatile("" : "+r"(at));
	if (with)
		(void)*at;
}

static bool map_pages(void)
{
	size_t bytes = (size_t)PAGES * STRIDE;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return false;
	(void)madvise(map, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < bytes; i += STRIDE)
		map[i] = 1;
	pages = map;
	return true;
}

struct result measure_cold(call_fn call)
{
	static double with[COLD_CALLS], without[COLD_CALLS], load[COLD_CALLS], none[COLD_CALLS];
	double per_ns = ticks_per_ns(), clock_and_call;
	unsigned n = extent.colds;
	struct result r = { 0 };

	if (!pages && !map_pages())
		return r;
	for (unsigned i = 0; i < n; i++) {
		without[i] = once_cold(call, i, false) / per_ns;
		with[i] = once_cold(call, i, true) / per_ns;
		none[i] = once_cold(load_page, i, false) / per_ns;
		load[i] = once_cold(load_page, i, true) / per_ns;
	}
	clock_and_call = percentile(without, n, 0.5);
	r = summary(with, without, n, percentile(with, n, 0.999) - clock_and_call, 1);
	r.load = summary(load, none, n, 0, 1).median;
	r.ops = n;
	return r;
}

/* ---- processors ---- */

bool pin(unsigned nth)
{
	cpu_set_t may, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &may) && nth-- == 0) {
			CPU_SET(cpu, &one);
			return sched_setaffinity(0, sizeof(one), &one) == 0;
		}
	}
	return false;
}
