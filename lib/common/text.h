/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sanitises text from other processes before we print it to terminals, logs, JSON or shells. Also
 * contains helpers that assemble text. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the code point at the start of a NUL-terminated text. Returns its length in bytes (1 for
 * the NUL). Returns 0 if the text is not UTF-8 there (Unicode 15, table 3-7). Overlong forms,
 * surrogates and numbers above U+10FFFF are not UTF-8 either.
 */
size_t cw_text_decode(const char *text, uint32_t *ret);

/*
 * Returns whether c is invisible, or changes how a terminal shows or obeys the rest of the text.
 * Such characters are control characters (C0, DEL, C1), direction marks and overrides, zero-width
 * characters, U+2028 and U+2029.
 */
bool cw_text_is_treacherous(uint32_t c);

/*
 * Replaces each byte of invalid UTF-8, and of a treacherous character, by '?'. \t and \n stay.
 * Works in place; the length stays the same.
 */
void cw_text_sanitise(char *text);

/*
 * Like cw_text_sanitise(), but also replaces \t and \n. For names and labels, which must stay on
 * one line.
 */
void cw_text_sanitise_line(char *text);

/*
 * Quotes a path as one argument of a command that people paste into a shell. A path that a POSIX
 * shell takes literally stays as it is. A path that begins with '-' becomes "./-…", so that no
 * command takes it for an option. Treacherous characters stay; the caller replaces them when it
 * prints the text. The caller releases the result with free(); NULL = out of memory.
 */
char *cw_text_argument(const char *path);

/*
 * Returns "command ARGUMENT", where ARGUMENT is the quoted path. The caller releases the text with
 * free(); NULL = out of memory.
 */
char *cw_text_command(const char *command, const char *path);

/*
 * Appends to a NUL-terminated text in a buffer of len bytes. Truncates the result if the buffer is
 * too small.
 */
void cw_text_append(char *text, size_t len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns the part of a path after its last slash, borrowed from path. */
const char *cw_text_base_name(const char *path);
