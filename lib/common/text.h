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
 * the NUL). Returns 0 if it is not UTF-8 (Unicode 15, table 3-7). Overlong forms, surrogates and
 * numbers above U+10FFFF are not UTF-8 either.
 */
size_t cw_text_decode(const char *text, uint32_t *ret);

/*
 * True if c is invisible, or changes how a terminal shows or obeys the rest of the text: control
 * characters (C0, DEL, C1), direction marks and overrides, zero-width characters, U+2028, U+2029.
 */
bool cw_text_is_treacherous(uint32_t c);

/*
 * Replaces each byte of invalid UTF-8, and each treacherous character except \t and \n, by '?'.
 * Works in place, byte by byte; the length stays the same.
 */
void cw_text_sanitise(char *text);

/*
 * Like cw_text_sanitise(), but for names and labels, which must stay on one line: also replaces \t
 * and \n.
 */
void cw_text_sanitise_line(char *text);

/*
 * Quotes a path as one argument of a command that people paste into a shell. If a POSIX shell takes
 * the path literally, it stays as it is. If the path begins with '-', it becomes "./-…".
 * Treacherous characters stay, and the caller replaces them when it prints the text. The caller
 * releases the result with free(); NULL = out of memory.
 */
char *cw_text_argument(const char *path);

/*
 * Returns "command ARGUMENT", where ARGUMENT is the quoted path. The caller releases it with
 * free(); NULL = out of memory.
 */
char *cw_text_command(const char *command, const char *path);

/* Appends to a NUL-terminated text in a buffer of len bytes. Truncates if there is no room. */
void cw_text_append(char *text, size_t len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns the part of a path after its last slash, borrowed from path. */
const char *cw_text_base_name(const char *path);
