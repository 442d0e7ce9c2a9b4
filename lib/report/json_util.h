/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small helpers around jansson. They handle values for which jansson has no type (64-bit ids, text
 * of unknown encoding), and look up values without trusting a document's types.
 *
 * Writers return a new reference, or NULL if out of memory. jansson's *_new setters refuse NULL. So
 * we build a document by or-ing their results, and check once.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Ends the building of a document. Returns value if nothing failed (bad == 0). Otherwise drops
 * value and returns NULL.
 */
json_t *cw_json_finish(json_t *value, int bad);

/* A member of an object. The value is a new reference; NULL = out of memory. */
struct cw_json_member {
	const char *key;
	json_t *value;
};

/*
 * Makes an object of members. The list ends with a NULL key. Takes all values, and returns NULL if
 * one of them is NULL.
 */
json_t *cw_json_object(const struct cw_json_member *members);

/* Adds members to an object like cw_json_object(). Returns 0 or -1. */
int cw_json_add(json_t *object, const struct cw_json_member *members);

/* Makes a string. Bytes that are not UTF-8 become '?'. A NULL text becomes null. */
json_t *cw_json_text(const char *text);

/* Makes an array of strings, one for each line of the text. */
json_t *cw_json_lines(const char *text);

/* Makes a string "0x…" of an id or hash, which is a name and not a number. */
json_t *cw_json_hex(uint64_t value);

/* Makes an integer if the value fits into JSON's 63 bits, else a string "0x…". */
json_t *cw_json_u64(uint64_t value);

/* Makes a string "2026-11-21T07:53:33.123Z", or null if wall_ns is 0. */
json_t *cw_json_wall(int64_t wall_ns);

/*
 * Reads a value made by cw_json_hex() or cw_json_u64(). Returns false if value is anything else,
 * or NULL.
 */
bool cw_json_read_u64(const json_t *value, uint64_t *ret);

/* Returns the string at key, or fallback if there is no string. object may be NULL. Borrowed. */
const char *cw_json_str(const json_t *object, const char *key, const char *fallback);

/* Returns the integer at key, or fallback if there is no integer. */
json_int_t cw_json_int(const json_t *object, const char *key, json_int_t fallback);
