/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain data from other programs' recordings: the contents of a pickle or a JSON file. Values live
 * in an arena, and we never free them one by one. Text is borrowed from the input. It is not
 * NUL-terminated, and it may not be UTF-8.
 *
 * Values form no cycles and are at most CW_VALUE_MAX_HEIGHT deep; the readers ensure both. But
 * values may be shared. A walk through all of a hostile value can therefore take hours. A look-up
 * cannot. One thread; no blocking.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "model/arena.h"

/* The maximum depth of a value. A dump of the Flight Recorder is 5 levels deep. */
#define CW_VALUE_MAX_HEIGHT 32
/*
 * The maximum number of fields in a record's dict. An entry of the Flight Recorder has 22 fields.
 */
#define CW_VALUE_MAX_FIELDS 64u

enum cw_value_type {
	CW_VALUE_NONE,
	CW_VALUE_BOOL,
	CW_VALUE_INT,
	CW_VALUE_FLOAT, /* also integers beyond 64 bits */
	CW_VALUE_STR,
	CW_VALUE_BYTES,
	CW_VALUE_LIST,
	CW_VALUE_TUPLE,
	CW_VALUE_DICT,
};

struct cw_value {
	uint8_t type;   /* enum cw_value_type */
	uint8_t height; /* number of levels below the value; 0 = it has no items */
	bool is_held;   /* part of another value, so it must not grow any more */
	uint32_t room;  /* capacity for items, used by the readers */
	uint32_t n;     /* number of items; a pair of a dict counts as two, key before value */
	uint32_t len;   /* length of the text in bytes */
	union {
		int64_t integer; /* also the value of a bool */
		double real;
		const char *text;
		struct cw_value **items;
	};
};

/*
 * Returns the value of a text key. If the key occurs several times, the last one counts. NULL = no
 * dict, no such key, or more than CW_VALUE_MAX_FIELDS keys. A pickle of a megabyte can put one
 * large dict in the place of each of 100,000 records, so the cost of a look-up has a fixed bound.
 * For a dict that is a table, the caller iterates over the items instead.
 */
const struct cw_value *cw_value_get(const struct cw_value *dict, const char *key);

/* Returns the number of items of a list or tuple. Returns 0 for any other value, and for NULL. */
uint32_t cw_value_count(const struct cw_value *list);

/*
 * Reads an integer, or an integer written as text, as in JSON dumps. Returns false for any other
 * value.
 */
bool cw_value_int(const struct cw_value *value, int64_t *ret);

bool cw_value_is_text(const struct cw_value *value, const char *text);

/*
 * Copies a text into buf, cut to len - 1 bytes. Characters outside of printable ASCII become '?'.
 * If value is not a text, buf becomes empty. Returns buf.
 */
char *cw_value_copy_text(const struct cw_value *value, char *buf, size_t len);

/*
 * Appends item to a list, tuple or dict that is not held, and adds the allocated bytes to *spent.
 * Errors: -E2BIG: too deep, or too many items; -ELOOP: `to` is held, or is item itself.
 */
int cw_value_append(struct cw_arena *arena, struct cw_value *to, struct cw_value *item,
		    size_t *spent);

/*
 * Converts a JSON document. Borrows the strings from doc. Error: -E2BIG: deeper than the limit.
 */
int cw_value_from_json(const json_t *doc, struct cw_arena *arena, struct cw_value **ret);
