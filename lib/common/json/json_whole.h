/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes JSON whole, or not at all. jansson 2.14 usually reports that memory has run out.
 * In two cases it loses data instead: bytes of its input, and keys of an object in its output. The
 * document then differs from the original, or jansson overruns its buffer. In these cases, too, our
 * functions report that memory has run out.
 *
 * Use our functions instead of json_loadb(), json_loads(), json_load_callback(), json_loadfd() and
 * json_dumps(). Any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Parses len bytes of JSON. Returns a new reference. On an error returns NULL, sets errno to ENOMEM
 * or EBADMSG, and describes the fault in *error. error may be NULL.
 */
json_t *cw_json_parse(const char *text, size_t len, size_t flags, json_error_t *error);
/* Parses a NUL-terminated string, like cw_json_parse(). */
json_t *cw_json_parse_text(const char *text, size_t flags);
/*
 * Parses all bytes up to the end of fd, like cw_json_parse(). Blocks like read(). errno may also be
 * an error of read().
 */
json_t *cw_json_parse_fd(int fd, size_t flags, json_error_t *error);

/*
 * Returns how many allocations of jansson and of the functions in this header have failed in this
 * thread. If the number grows while a caller assembles a document, the document may be incomplete.
 */
unsigned cw_json_failures(void);

/*
 * Returns the document as text, which the caller releases with free(). Returns NULL if memory has
 * run out, or if JSON cannot express doc.
 */
char *cw_json_write(const json_t *doc, size_t flags);
