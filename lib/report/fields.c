/* SPDX-License-Identifier: Apache-2.0 */
#include "report/fields.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "report/json_util.h"

/*
 * Instants lie below this limit, so a difference of two cannot overflow. The limit is in the year
 * 2116.
 */
#define MAX_INSTANT_NS (INT64_C(1) << 62)

static int64_t load_signed(const struct cw_field *f, const void *at)
{
	switch (f->type) {
	case CW_FIELD_I16:
		return *(const int16_t *)at;
	case CW_FIELD_I32:
		return *(const int32_t *)at;
	default:
		return *(const int64_t *)at;
	}
}

static uint64_t load_unsigned(const struct cw_field *f, const void *at)
{
	switch (f->type) {
	case CW_FIELD_U8:
		return *(const uint8_t *)at;
	case CW_FIELD_U16:
		return *(const uint16_t *)at;
	case CW_FIELD_U32:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

/*
 * Returns a new reference to the field's value. Sets *ret_skip instead if the value is the default,
 * which we omit from the document.
 */
static json_t *field_value(const struct cw_field *f, const void *at, bool *ret_skip)
{
	*ret_skip = false;
	if (f->type == CW_FIELD_TEXT) {
		*ret_skip = !*(const char *const *)at;
		return *ret_skip ? NULL : cw_json_text(*(const char *const *)at);
	}
	if (f->type == CW_FIELD_I16 || f->type == CW_FIELD_I32 || f->type == CW_FIELD_I64) {
		*ret_skip = load_signed(f, at) == 0;
		return *ret_skip ? NULL : json_integer(load_signed(f, at));
	}
	*ret_skip = load_unsigned(f, at) == 0;
	if (*ret_skip)
		return NULL;
	return f->type == CW_FIELD_ID ? cw_json_hex(load_unsigned(f, at))
				      : cw_json_u64(load_unsigned(f, at));
}

json_t *cw_fields_write(const struct cw_field *fields, const void *from)
{
	json_t *doc = json_object();
	int bad = doc ? 0 : -1;

	for (const struct cw_field *f = fields; f->name && !bad; f++) {
		bool skip;
		json_t *value = field_value(f, (const char *)from + f->offset, &skip);

		if (!skip)
			bad |= json_object_set_new_nocheck(doc, f->name, value);
	}
	return cw_json_finish(doc, bad);
}

json_t *cw_fields_write_array(const struct cw_field *fields, const void *items, size_t n,
			      size_t size)
{
	json_t *list = json_array();
	int bad = list ? 0 : -1;

	for (size_t i = 0; i < n && !bad; i++)
		bad |= json_array_append_new(
			list, cw_fields_write(fields, (const char *)items + i * size));
	return cw_json_finish(list, bad);
}

static bool store_signed(const struct cw_field *f, const json_t *value, void *at)
{
	json_int_t v;

	if (!json_is_integer(value))
		return false;
	v = json_integer_value(value);
	switch (f->type) {
	case CW_FIELD_I16:
		*(int16_t *)at = (int16_t)v;
		return v >= INT16_MIN && v <= INT16_MAX;
	case CW_FIELD_I32:
		*(int32_t *)at = (int32_t)v;
		return v >= INT32_MIN && v <= INT32_MAX;
	default:
		*(int64_t *)at = v;
		return v >= -MAX_INSTANT_NS && v <= MAX_INSTANT_NS;
	}
}

static bool store_unsigned(const struct cw_field *f, const json_t *value, void *at)
{
	uint64_t v;

	if (!cw_json_read_u64(value, &v))
		return false;
	switch (f->type) {
	case CW_FIELD_U8:
		*(uint8_t *)at = (uint8_t)v;
		return v <= UINT8_MAX;
	case CW_FIELD_U16:
		*(uint16_t *)at = (uint16_t)v;
		return v <= UINT16_MAX;
	case CW_FIELD_U32:
		*(uint32_t *)at = (uint32_t)v;
		return v <= UINT32_MAX;
	default:
		*(uint64_t *)at = v;
		return true;
	}
}

static bool store_field(const struct cw_field *f, const json_t *value, void *at)
{
	switch (f->type) {
	case CW_FIELD_TEXT:
		/* we borrow the string; the snapshot copies it later */
		*(const char **)at = json_string_value(value);
		return json_is_string(value);
	case CW_FIELD_I16:
	case CW_FIELD_I32:
	case CW_FIELD_I64:
		return store_signed(f, value, at);
	default:
		return store_unsigned(f, value, at);
	}
}

int cw_fields_read(const struct cw_field *fields, const json_t *doc, void *to, const char *what,
		   struct cw_err *err)
{
	if (!json_is_object(doc))
		return cw_err_set(err, EBADMSG, "%s: not an object", what);
	for (const struct cw_field *f = fields; f->name; f++) {
		const json_t *value = json_object_get(doc, f->name);

		if (value && !store_field(f, value, (char *)to + f->offset))
			return cw_err_set(err, EBADMSG, "%s: bad value of \"%s\"", what, f->name);
	}
	return 0;
}

/* Reads an array of plain structs into fresh memory. A missing key is read as an empty array. */
int cw_fields_read_array(const struct cw_field *fields, const json_t *doc, const char *key,
			 size_t size, size_t max, void **ret, uint32_t *ret_n, struct cw_err *err)
{
	const json_t *list = json_object_get(doc, key);
	_cleanup_(freep) void *items = NULL;
	size_t n = json_array_size(list);
	int r;

	*ret = NULL;
	*ret_n = 0;
	if (!list)
		return 0;
	if (!json_is_array(list))
		return cw_err_set(err, EBADMSG, "\"%s\": not an array", key);
	if (n > max)
		return cw_err_set(err, E2BIG, "\"%s\": too many entries", key);
	items = calloc(n ? n : 1, size);
	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r = cw_fields_read(fields, json_array_get(list, i), (char *)items + i * size, key,
				   err);
		if (r < 0)
			return r;
	}
	*ret = steal_ptr(&items);
	*ret_n = (uint32_t)n;
	return 0;
}
