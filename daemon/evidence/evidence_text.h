/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts text of unknown origin (thread names, symbols, file names, command lines) to JSON
 * strings that are valid UTF-8, printable and bounded. Also builds a part of evidence in the shape
 * that all parts share. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Returns a new reference to a string of at most max_bytes bytes, made from text[len]. Bytes that
 * are not printable UTF-8 become '?', and a text over the limit ends in "…". NULL = out of memory.
 */
json_t *cw_evidence_text(const char *text, size_t len, size_t max_bytes);

/* Like cw_evidence_text(), but for a NUL-terminated text. Returns JSON null if text is NULL. */
json_t *cw_evidence_text_or_null(const char *text, size_t max_bytes);

/*
 * Like cw_evidence_text(), but for a JSON string from a child. Returns JSON null for any other
 * type.
 */
json_t *cw_evidence_clean(const json_t *value, size_t max_bytes);

/*
 * Returns an empty part of collwatch.evidence/1 with status and reason, a new reference. NULL = out
 * of memory.
 */
json_t *cw_evidence_part(const char *status, const char *reason);
