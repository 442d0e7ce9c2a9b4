/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sanitise text from other processes before we print it to terminals, logs, JSON or shells. Also
 * helpers that assemble text. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the code point at the start of a NUL-terminated text. Returns its length in bytes (NUL:
 * 1). 0 = not UTF-8 (Unicode 15, table 3-7): overlong forms, surrogates and numbers above U+10FFFF
 * are not UTF-8 either.
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

/* The same for names and labels, which must stay on one line: also replaces \t and \n. */
void cw_text_sanitise_line(char *text);

/*
 * Quotes a path as one argument of a command that people paste into a shell. A path stays as it is
 * if a POSIX shell takes it literally. A path that begins with '-' becomes "./-…". Treacherous
 * characters stay: the caller replaces them when it prints the text. NULL: out of memory.
 */
char *cw_text_argument(const char *path);

/* Returns "command ARGUMENT", path being the argument. NULL: out of memory. */
char *cw_text_command(const char *command, const char *path);

/* Appends to a NUL-terminated text in a buffer of len bytes. Truncates if there is no room. */
void cw_text_append(char *text, size_t len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The part of a path after its last slash; borrowed. */
const char *cw_text_base_name(const char *path);
