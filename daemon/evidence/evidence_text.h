/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of unknown origin (thread names, symbols, file names, command lines) as JSON strings that
 * are valid UTF-8, printable and bounded; and the shape all parts of evidence share. Pure; any
 * thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * New reference to a string of at most max_bytes bytes of text[len]; what is not printable UTF-8
 * becomes '?', what is too long ends in "…". NULL = out of memory.
 */
json_t *cw_evidence_text(const char *text, size_t len, size_t max_bytes);

/* The same for a whole text; JSON null for NULL. */
json_t *cw_evidence_text_or_null(const char *text, size_t max_bytes);

/* The same for a JSON value from a child: JSON null when it is not a string. */
json_t *cw_evidence_clean(const json_t *value, size_t max_bytes);

/* A part of collwatch.evidence/1 with nothing in it but why. New reference; NULL = out of memory.
 */
json_t *cw_evidence_part(const char *status, const char *reason);
