/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small helpers around jansson: values that jansson has no type for (64-bit ids, text of unknown
 * encoding) and look-ups that never trust a document's types.
 *
 * Writers return a new reference or NULL when out of memory, and jansson's *_new setters refuse
 * NULL, so a document is built by or-ing up their results and checking once.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Ends the building of a document: returns value if nothing failed (bad == 0), else drops it and
 * returns NULL.
 */
json_t *cw_json_finish(json_t *value, int bad);

/* A string; bytes that are not UTF-8 become '?'. A NULL text becomes null. */
json_t *cw_json_text(const char *text);

/* The lines of a text, as an array of strings. */
json_t *cw_json_lines(const char *text);

/* "0x…", for ids and hashes: they are names, not numbers. */
json_t *cw_json_hex(uint64_t value);

/* An integer where JSON's 63 bits suffice, else "0x…". */
json_t *cw_json_u64(uint64_t value);

/* "2026-11-21T07:53:33.123Z"; 0 = null. */
json_t *cw_json_wall(int64_t wall_ns);

/* Reads the output of cw_json_hex() and cw_json_u64(). False if value is neither (or NULL). */
bool cw_json_read_u64(const json_t *value, uint64_t *ret);

/* The string at key, or fallback when there is none. Borrowed from object, which may be NULL. */
const char *cw_json_str(const json_t *object, const char *key, const char *fallback);

/* The integer at key, or fallback. */
json_int_t cw_json_int(const json_t *object, const char *key, json_int_t fallback);
