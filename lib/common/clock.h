/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of time. Modules take it as an argument, so tests can pass a fake clock. now_ns gives
 * the time of an event, and wall_ns the time that a document shows to people. awake_ns measures
 * silence and the deadlines of answers.
 */
#pragma once

#include <stdint.h>

struct cw_clock {
	int64_t (*monotonic_ns)(void *user);
	int64_t (*wall_ns)(void *user);
	void *user;
	/*
	 * How long this process has been awake (common/awake.h). NULL = the process is always
	 * awake.
	 */
	int64_t (*awake_ns)(void *user);
};

/* The system's CLOCK_MONOTONIC and CLOCK_REALTIME. */
extern const struct cw_clock cw_clock_system;

static inline int64_t cw_clock_now_ns(const struct cw_clock *c)
{
	return c->monotonic_ns(c->user);
}

static inline int64_t cw_clock_wall_ns(const struct cw_clock *c)
{
	return c->wall_ns(c->user);
}

static inline int64_t cw_clock_awake_ns(const struct cw_clock *c)
{
	return c->awake_ns ? c->awake_ns(c->user) : c->monotonic_ns(c->user);
}

#define CW_NS_PER_S INT64_C(1000000000)
#define CW_NS_PER_MS INT64_C(1000000)

/* Limit of times that we calculate with: about 146 years. */
#define CW_BOUND_NS (INT64_MAX / 2)

/*
 * Clamps times and ages from other hosts and from files to CW_BOUND_NS. The difference of two
 * clamped times cannot overflow.
 */
static inline int64_t cw_bounded_ns(int64_t ns)
{
	if (ns > CW_BOUND_NS)
		return CW_BOUND_NS;
	return ns < -CW_BOUND_NS ? -CW_BOUND_NS : ns;
}

/*
 * Returns now - then, or 0 if that is negative. Meant for times from the memory of another process,
 * which may be false.
 */
static inline int64_t cw_age_ns(int64_t now_ns, int64_t then_ns)
{
	if (then_ns < 0)
		then_ns = 0;
	return then_ns < now_ns ? now_ns - then_ns : 0;
}

/* Writes a time like "2026-11-21T07:53:33.123Z" into buf[32] and returns buf. */
char *cw_wall_format(int64_t wall_ns, char *buf);
/* Parses the form that cw_wall_format() writes. Returns -1 if text does not have this form. */
int64_t cw_wall_parse(const char *text);

/*
 * Returns the CPU time of the calling thread. We measure the cost of work with it: on a node whose
 * cores are all busy, the wall clock would count the wait for a core as work. Any thread; does not
 * block.
 */
int64_t cw_clock_cpu_ns(void);
