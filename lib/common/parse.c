/* SPDX-License-Identifier: Apache-2.0 */
#include "common/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/clock.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", CW_NS_PER_MS },
	{ "s", CW_NS_PER_S },
	{ "min", 60 * CW_NS_PER_S },
	{ "h", 3600 * CW_NS_PER_S },
	{ "d", 86400 * CW_NS_PER_S },
	{ NULL, 0 },
};

static const struct unit byte_units[] = {
	{ "B", 1 },
	{ "KiB", UINT64_C(1) << 10 },
	{ "MiB", UINT64_C(1) << 20 },
	{ "GiB", UINT64_C(1) << 30 },
	{ "TiB", UINT64_C(1) << 40 },
	{ NULL, 0 },
};

/* Returns the value of a digit in this base; `base` if c is no such digit. */
static unsigned value_of(char c, unsigned base)
{
	unsigned v = base;

	if (c >= '0' && c <= '9')
		v = (unsigned)(c - '0');
	else if (c >= 'a' && c <= 'f')
		v = (unsigned)(c - 'a') + 10;
	else if (c >= 'A' && c <= 'F')
		v = (unsigned)(c - 'A') + 10;
	return v < base ? v : base;
}

int cw_parse_digits(const char **text, unsigned base, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0;

	if (value_of(*p, base) == base)
		return -EINVAL;
	for (; value_of(*p, base) < base; p++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)value_of(*p, base), &v))
			return -ERANGE;
	*text = p;
	*ret = v;
	return 0;
}

int cw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int r;

	if (text[strspn(text, "0123456789")] != '\0')
		return -EINVAL;
	r = cw_parse_digits(&text, 10, &v);
	if (r < 0)
		return r;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int cw_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret)
{
	const char *digits = *text == '-' ? text + 1 : text;
	uint64_t limit = digits == text ? (uint64_t)INT64_MAX : (uint64_t)INT64_MAX + 1;
	uint64_t magnitude;
	int64_t v;
	int r;

	r = cw_parse_u64(digits, 0, limit, &magnitude);
	if (r < 0)
		return r;
	v = digits == text ? (int64_t)magnitude : (int64_t)(UINT64_C(0) - magnitude);
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

static int parse_with_unit(const char *text, const struct unit *units, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int r;

	r = cw_parse_digits(&text, 10, &v);
	if (r < 0)
		return r;
	if (*text == '\0') {
		if (v != 0)
			return -EINVAL; /* "90" lacks a unit */
		*ret = 0;
		return 0;
	}
	for (; units->name; units++) {
		if (strcmp(units->name, text) != 0)
			continue;
		if (__builtin_mul_overflow(v, units->factor, &v) || v > max)
			return -ERANGE;
		*ret = v;
		return 0;
	}
	return -EINVAL;
}

int cw_parse_duration_ns(const char *text, int64_t *ret_ns)
{
	uint64_t v;
	int r;

	r = parse_with_unit(text, duration_units, INT64_MAX, &v);
	if (r < 0)
		return r;
	*ret_ns = (int64_t)v;
	return 0;
}

int cw_parse_bytes(const char *text, uint64_t *ret)
{
	return parse_with_unit(text, byte_units, UINT64_MAX, ret);
}

/* Writes the two largest units, as in "2 min 5 s". Omits the smaller unit if its number is zero. */
static void format_two(uint64_t major, const char *major_unit, uint64_t minor,
		       const char *minor_unit, const char *sign, char *buf, unsigned len)
{
	if (minor)
		(void)snprintf(buf, len, "%s%" PRIu64 " %s %" PRIu64 " %s", sign, major, major_unit,
			       minor, minor_unit);
	else
		(void)snprintf(buf, len, "%s%" PRIu64 " %s", sign, major, major_unit);
}

int cw_parse_switch(const char *text, bool *ret)
{
	static const char *const words[][2] = {
		{ "0", "1" }, { "false", "true" }, { "no", "yes" }, { "off", "on" }
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (int is_on = 0; is_on < 2; is_on++) {
			if (strcasecmp(text, words[i][is_on]) != 0)
				continue;
			*ret = is_on;
			return 0;
		}
	}
	return -EINVAL;
}

bool cw_parse_agent_is_off(const char *collwatch, const char *disable)
{
	bool is_on = true, is_disabled = false;

	if (collwatch)
		(void)cw_parse_switch(collwatch, &is_on); /* is_on stays true otherwise */
	if (disable)
		(void)cw_parse_switch(disable, &is_disabled);
	return !is_on || is_disabled;
}

char *cw_format_duration(int64_t ns, char *buf, unsigned len)
{
	const char *sign = ns < 0 ? "-" : "";
	uint64_t abs_ns = ns < 0 ? UINT64_C(0) - (uint64_t)ns : (uint64_t)ns;
	uint64_t ms = abs_ns / CW_NS_PER_MS, s = ms / 1000, min = s / 60, h = min / 60;

	if (abs_ns == 0)
		(void)snprintf(buf, len, "0 s");
	else if (ms == 0)
		(void)snprintf(buf, len, "%s%" PRIu64 " us", sign, abs_ns / 1000);
	else if (s == 0)
		(void)snprintf(buf, len, "%s%" PRIu64 " ms", sign, ms);
	else if (s < 10 && ms % 1000 >= 100)
		(void)snprintf(buf, len, "%s%" PRIu64 ".%" PRIu64 " s", sign, s, ms % 1000 / 100);
	else if (min == 0)
		(void)snprintf(buf, len, "%s%" PRIu64 " s", sign, s);
	else if (h == 0)
		format_two(min, "min", s % 60, "s", sign, buf, len);
	else if (h < 24)
		format_two(h, "h", min % 60, "min", sign, buf, len);
	else
		format_two(h / 24, "d", h % 24, "h", sign, buf, len);
	return buf;
}
