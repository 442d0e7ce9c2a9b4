/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/since.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/parse.h"

/* The forms of a date. A field that a form lacks has the value of today at midnight. */
static const struct form {
	const char *format;
	bool is_utc;
} forms[] = {
	{ "%Y-%m-%d", false },          { "%Y-%m-%d %H:%M", false },
	{ "%Y-%m-%d %H:%M:%S", false }, { "%Y-%m-%dT%H:%M", false },
	{ "%Y-%m-%dT%H:%M:%S", false }, { "%Y-%m-%dT%H:%MZ", true },
	{ "%Y-%m-%dT%H:%M:%SZ", true }, { "%H:%M", false },
	{ "%H:%M:%S", false },
};

/* Returns today at midnight, in local time. */
static struct tm today(int64_t now_wall_ns)
{
	time_t now = (time_t)(now_wall_ns / CW_NS_PER_S);
	struct tm tm = { 0 };

	(void)localtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	return tm;
}

static int to_wall(struct tm tm, bool is_utc, int64_t *ret_wall_ns)
{
	struct tm normal = tm;
	time_t s = timegm(&normal);

	if (normal.tm_mday != tm.tm_mday || normal.tm_mon != tm.tm_mon)
		return -EINVAL; /* for example 31 February, which has become March */
	tm.tm_isdst = -1;
	if (!is_utc)
		s = mktime(&tm);
	if (s < 0 || s > CW_BOUND_NS / CW_NS_PER_S)
		return -ERANGE;
	*ret_wall_ns = (int64_t)s * CW_NS_PER_S;
	return 0;
}

static int parse_date(const char *text, int64_t now_wall_ns, int64_t *ret_wall_ns)
{
	struct tm day = today(now_wall_ns);

	if (strcmp(text, "today") == 0)
		return to_wall(day, false, ret_wall_ns);
	if (strcmp(text, "yesterday") == 0) {
		day.tm_hour = 12; /* every day has a noon */
		day.tm_mday--;
		day.tm_isdst = -1;
		(void)mktime(&day); /* turns day 0 into the last day of the previous month */
		day.tm_hour = 0;
		return to_wall(day, false, ret_wall_ns);
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = day;
		const char *end = strptime(text, forms[i].format, &tm);

		if (end && !*end)
			return to_wall(tm, forms[i].is_utc, ret_wall_ns);
	}
	*ret_wall_ns = cw_wall_parse(text);
	return *ret_wall_ns < 0 ? -EINVAL : 0;
}

int cw_since_parse(const char *text, int64_t now_wall_ns, int64_t *ret_wall_ns)
{
	int64_t ns, ago_ns;
	int r;

	if (cw_parse_duration_ns(text, &ago_ns) == 0)
		ns = ago_ns < now_wall_ns ? now_wall_ns - ago_ns : 1; /* at the earliest 1970 */
	else if ((r = parse_date(text, now_wall_ns, &ns)) < 0)
		return r;
	if (ns > now_wall_ns)
		return -ERANGE;
	*ret_wall_ns = ns;
	return 0;
}
