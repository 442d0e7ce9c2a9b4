/* SPDX-License-Identifier: Apache-2.0 */
#include "report/json_util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"

json_t *cw_json_finish(json_t *value, int bad)
{
	if (!bad)
		return value;
	json_decref(value);
	return NULL;
}

int cw_json_add(json_t *object, const struct cw_json_member *members)
{
	int bad = 0;

	for (; members->key; members++)
		bad |= json_object_set_new(object, members->key, members->value);
	return bad;
}

json_t *cw_json_object(const struct cw_json_member *members)
{
	json_t *object = json_object();

	return cw_json_finish(object, cw_json_add(object, members));
}

json_t *cw_json_text(const char *text)
{
	_cleanup_(freep) char *ascii = NULL;
	json_t *value;

	if (!text)
		return json_null();
	errno = 0;
	value = json_string(text);
	if (value || errno == ENOMEM)
		return value;
	/* The text is not UTF-8. */
	ascii = strdup(text);
	if (!ascii)
		return NULL;
	for (char *p = ascii; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	return json_string(ascii);
}

json_t *cw_json_lines(const char *text)
{
	_cleanup_(freep) char *copy = strdup(text);
	json_t *list = json_array();
	char *at = copy, *line;
	int bad = copy == NULL;

	while (at && (line = strsep(&at, "\n")))
		bad |= json_array_append_new(list, cw_json_text(line));
	return cw_json_finish(list, bad);
}

json_t *cw_json_hex(uint64_t value)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "0x%016" PRIx64, value);
	return json_string(buf);
}

json_t *cw_json_u64(uint64_t value)
{
	return value <= INT64_MAX ? json_integer((json_int_t)value) : cw_json_hex(value);
}

json_t *cw_json_wall(int64_t wall_ns)
{
	char buf[32];

	return wall_ns ? json_string(cw_wall_format(wall_ns, buf)) : json_null();
}

static bool read_hex(const char *text, uint64_t *ret)
{
	uint64_t value = 0;
	size_t n = 0;

	if (strncmp(text, "0x", 2) != 0)
		return false;
	for (text += 2; *text; text++, n++) {
		const char *digits = "0123456789abcdef";
		const char *at = strchr(digits, *text);

		if (!at || n == 16)
			return false;
		value = value << 4 | (uint64_t)(at - digits);
	}
	if (!n)
		return false;
	*ret = value;
	return true;
}

bool cw_json_read_u64(const json_t *value, uint64_t *ret)
{
	if (json_is_string(value))
		return read_hex(json_string_value(value), ret);
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret = (uint64_t)json_integer_value(value);
	return true;
}

const char *cw_json_str(const json_t *object, const char *key, const char *fallback)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : fallback;
}

json_int_t cw_json_int(const json_t *object, const char *key, json_int_t fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : fallback;
}
