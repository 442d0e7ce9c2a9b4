/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sayings (model/saying.h) as JSON. A document has a text under a key such as "summary" and the
 * sayings that it was made from under "summary_said": a list of {"saying": NAME, "args": [...]}.
 * docs/schemas.md has the form of each argument. Readers need no table, because the text is beside
 * it; programs need not search the text.
 *
 * Documents are untrusted. Any thread; nothing blocks.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "model/saying.h"

/* A new list. NULL = out of memory. */
json_t *cw_said_doc(const struct cw_clause *clause);

/*
 * Reads a list into an empty clause with an arena. Returns 0; -ENOMEM; -EINVAL if it is no list of
 * sayings, or -ENOENT if this version does not know one of its sayings. The clause then stays
 * empty, and the caller keeps the text.
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
