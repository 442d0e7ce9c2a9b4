/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON read and written whole, or not at all. Where memory runs out jansson 2.14 says so, but for
 * the bytes of what it reads and the keys of an object that it writes: those it loses, and the
 * document that comes out is another one, or it runs over its buffer. Here that is out of memory,
 * too.
 *
 * For use instead of json_loadb(), json_loads(), json_load_callback(), json_loadfd() and
 * json_dumps(). Any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * New reference. NULL: errno is ENOMEM or EBADMSG, and error, which may be NULL, says what is wrong
 * with the text.
 */
json_t *cw_json_parse(const char *text, size_t len, size_t flags, json_error_t *error);
/* The same of a string. */
json_t *cw_json_parse_text(const char *text, size_t flags);
/* The same of all that can be read from fd, blocking as that does; errno may be read()'s, too. */
json_t *cw_json_parse_fd(int fd, size_t flags, json_error_t *error);

/*
 * How often jansson, or what is here, did not get the memory it asked for, of this thread: where it
 * has grown while a document was put together, something may be missing in that.
 */
unsigned cw_json_failures(void);

/* free(). NULL = out of memory, or what doc holds is no document. */
char *cw_json_write(const json_t *doc, size_t flags);
