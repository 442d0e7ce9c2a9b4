/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts text of unknown origin (thread names, symbols, file names, command lines) to JSON
 * strings that are valid UTF-8, printable and bounded. Also builds the common shape of all parts of
 * evidence. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * New reference to a string of at most max_bytes bytes of text[len]. Bytes that are not printable
 * UTF-8 become '?', and a text over the limit ends in "…". NULL = out of memory.
 */
json_t *cw_evidence_text(const char *text, size_t len, size_t max_bytes);

/* The same for a whole text; JSON null for NULL. */
json_t *cw_evidence_text_or_null(const char *text, size_t max_bytes);

/* The same for a JSON value from a child: JSON null for any other type. */
json_t *cw_evidence_clean(const json_t *value, size_t max_bytes);

/*
 * An empty part of collwatch.evidence/1 with status and reason. New reference; NULL = out
 * of memory.
 */
json_t *cw_evidence_part(const char *status, const char *reason);
