/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read and write JSON whole, or not at all. jansson 2.14 reports out of memory except in two cases:
 * the bytes of its input, and the keys of an object in its output. It loses those. Then the
 * document differs from the original, or jansson overruns its buffer. Our functions report out of
 * memory in these cases, too.
 *
 * Use them instead of json_loadb(), json_loads(), json_load_callback(), json_loadfd() and
 * json_dumps(). Any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Returns a new reference. NULL: errno is ENOMEM or EBADMSG, and error describes the fault in the
 * text. error may be NULL.
 */
json_t *cw_json_parse(const char *text, size_t len, size_t flags, json_error_t *error);
/* The same for a NUL-terminated string. */
json_t *cw_json_parse_text(const char *text, size_t flags);
/*
 * The same for all bytes up to the end of fd. Blocks as read() does, and errno may be
 * read()'s, too.
 */
json_t *cw_json_parse_fd(int fd, size_t flags, json_error_t *error);

/*
 * Number of failed allocations of jansson and of these functions, in this thread. If it has grown
 * while a caller assembled a document, the document may be incomplete.
 */
unsigned cw_json_failures(void);

/*
 * The caller releases the text with free(). NULL = out of memory, or doc cannot be written as
 * a document.
 */
char *cw_json_write(const json_t *doc, size_t flags);
