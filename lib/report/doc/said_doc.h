/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sayings (model/saying.h) as JSON. A document has a text under a key such as "summary". Under
 * "summary_said" it has the sayings that produced the text: a list of {"saying": NAME, "args":
 * [...]}. docs/schemas.md has the form of each argument. Users read the text without a table of
 * sayings. Programs read the sayings and need not search the text.
 *
 * Documents are untrusted. Any thread; nothing blocks.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "model/saying.h"

/* Returns the sayings of the clause as a new list. NULL = out of memory. */
json_t *cw_said_doc(const struct cw_clause *clause);

/*
 * Reads a list of sayings into an empty clause, which must have an arena. Returns 0 or -ENOMEM.
 * -EINVAL: it is no list of sayings. -ENOENT: this version does not know one of the sayings. After
 * an error the clause stays empty, and the caller keeps the text.
 */
int cw_said_read(const json_t *list, struct cw_clause *clause);

/*
 * Sets object[key] to the clause's text of at most len - 1 bytes, and object[key_said] to its
 * sayings. len is at most CW_SAID_TEXT_MAX. Returns 0 or -1 (out of memory), as jansson does. If
 * the object had both keys, it keeps both values after a failure.
 */
int cw_said_set(json_t *object, const char *key, const struct cw_clause *clause, size_t len);

#define CW_SAID_TEXT_MAX 2048u
#define CW_SAID_SUFFIX "_said"
