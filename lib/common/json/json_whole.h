/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes JSON whole, or not at all. If memory runs out, jansson 2.14 usually reports it.
 * In two cases it loses data instead: bytes of its input, and keys of an object in its output. Then
 * the document differs from the original, or jansson overruns its buffer. Our functions report out
 * of memory in these cases, too.
 *
 * Use them instead of json_loadb(), json_loads(), json_load_callback(), json_loadfd() and
 * json_dumps(). Any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Returns a new reference. On an error returns NULL and sets errno to ENOMEM or EBADMSG. *error
 * then describes the fault in the text. error may be NULL.
 */
json_t *cw_json_parse(const char *text, size_t len, size_t flags, json_error_t *error);
/* Like cw_json_parse(), but for a NUL-terminated string. */
json_t *cw_json_parse_text(const char *text, size_t flags);
/*
 * Like cw_json_parse(), but for all bytes up to the end of fd. Blocks as read() does. errno may
 * also be an error of read().
 */
json_t *cw_json_parse_fd(int fd, size_t flags, json_error_t *error);

/*
 * Returns how many allocations of jansson and of these functions have failed in this thread. If the
 * number has grown while a caller assembled a document, the document may be incomplete.
 */
unsigned cw_json_failures(void);

/*
 * Returns the document as text, which the caller releases with free(). NULL = out of memory, or
 * JSON cannot express doc.
 */
char *cw_json_write(const json_t *doc, size_t flags);
