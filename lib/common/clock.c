/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	/* clock_gettime() cannot fail for these two clocks with a valid pointer. */
	(void)clock_gettime(id, &ts);
	return ts.tv_sec * CW_NS_PER_S + ts.tv_nsec;
}

static int64_t system_monotonic_ns(void *user)
{
	return read_clock(CLOCK_MONOTONIC);
}

static int64_t system_wall_ns(void *user)
{
	return read_clock(CLOCK_REALTIME);
}

const struct cw_clock cw_clock_system = {
	.monotonic_ns = system_monotonic_ns,
	.wall_ns = system_wall_ns,
};

char *cw_wall_format(int64_t wall_ns, char *buf)
{
	/*
	 * We clamp times before 1970 to 1970. 64-bit nanoseconds end in 2262, so the year has four
	 * digits.
	 */
	int64_t ns = wall_ns < 0 ? 0 : wall_ns;
	time_t s = (time_t)(ns / CW_NS_PER_S);
	struct tm tm = { 0 };

	(void)gmtime_r(&s, &tm);
	(void)snprintf(buf, 32, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		       (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)(tm.tm_mon + 1) % 100u,
		       (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
		       (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u,
		       (unsigned)(ns % CW_NS_PER_S / CW_NS_PER_MS) % 1000u);
	return buf;
}

/*
 * Returns whether text has the form `form`, in which '0' stands for any digit. Reads the numbers
 * between the separators.
 */
static bool read_numbers(const char *text, const char *form, int *numbers)
{
	size_t n = 0;
	int value = 0;

	for (; *form; form++, text++) {
		if (*form == '0') {
			if (*text < '0' || *text > '9')
				return false;
			value = value * 10 + (*text - '0');
			continue;
		}
		if (*text != *form)
			return false;
		numbers[n++] = value;
		value = 0;
	}
	return *text == '\0';
}

int64_t cw_wall_parse(const char *text)
{
	int v[7] = { 0 };
	struct tm tm, normal;
	time_t s;

	if (!read_numbers(text, "0000-00-00T00:00:00.000Z", v) || v[0] < 1970 || v[0] > 2261)
		return -1;
	tm = (struct tm){
		.tm_year = v[0] - 1900,
		.tm_mon = v[1] - 1,
		.tm_mday = v[2],
		.tm_hour = v[3],
		.tm_min = v[4],
		.tm_sec = v[5],
	};
	normal = tm;
	s = timegm(&normal);
	/* timegm() turns 31 February into a day of March. We refuse such a date. */
	if (normal.tm_mon != tm.tm_mon || normal.tm_mday != tm.tm_mday ||
	    normal.tm_hour != tm.tm_hour || normal.tm_min != tm.tm_min ||
	    normal.tm_sec != tm.tm_sec)
		return -1;
	return (int64_t)s * CW_NS_PER_S + v[6] * CW_NS_PER_MS;
}

int64_t cw_clock_cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0)
		return 0; /* cannot fail for the calling thread */
	return t.tv_sec * CW_NS_PER_S + t.tv_nsec;
}
