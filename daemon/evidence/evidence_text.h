/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts text of unknown origin (thread names, symbols, file names, command lines) to JSON
 * strings. The strings are valid UTF-8, printable, and of limited size. Also makes an empty part of
 * evidence in the common form. Depends only on its arguments; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Returns a string of at most max_bytes bytes from text[len], a new reference; NULL = out of
 * memory. Bytes that are not printable UTF-8 become '?'. If we cut the text, it ends in "…".
 */
json_t *cw_evidence_text(const char *text, size_t len, size_t max_bytes);

/* Like cw_evidence_text(), but for a NUL-terminated text. Returns JSON null if text is NULL. */
json_t *cw_evidence_text_or_null(const char *text, size_t max_bytes);

/*
 * Like cw_evidence_text(), but for a JSON string that a child wrote. Returns JSON null if value is
 * not a string.
 */
json_t *cw_evidence_clean(const json_t *value, size_t max_bytes);

/*
 * Returns an empty part of collwatch.evidence/1 with its status and the reason, a new reference;
 * NULL = out of memory.
 */
json_t *cw_evidence_part(const char *status, const char *reason);
