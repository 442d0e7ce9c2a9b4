/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from other processes, made safe to print: terminals, logs, JSON, shells; and text that is
 * put together. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The code point at the start of a text that ends with NUL. Returns its bytes (NUL: 1); 0 = not
 * UTF-8 (overlong forms, surrogates and numbers above U+10FFFF included: Unicode 15, table 3-7).
 */
size_t cw_text_decode(const char *text, uint32_t *ret);

/*
 * Would not be seen, or would make the rest be seen, or obeyed, otherwise than it is: control
 * characters (C0, DEL, C1), direction marks and overrides, zero-width characters, U+2028, U+2029.
 */
bool cw_text_is_treacherous(uint32_t c);

/*
 * Replaces in place, byte by byte, what is not valid UTF-8 and all treacherous characters but \t
 * and \n by '?'. The length stays the same.
 */
void cw_text_sanitise(char *text);

/* The same for what must stay on one line (names, labels): \t and \n go as well. */
void cw_text_sanitise_line(char *text);

/*
 * A path as one argument of a command that people paste into a shell: as it is, or in quotes where
 * a POSIX shell would take it for anything else; one that begins with '-' becomes "./-…".
 * Treacherous characters stay: whoever prints it replaces them. NULL: out of memory.
 */
char *cw_text_argument(const char *path);

/* "command ARGUMENT". NULL: out of memory. */
char *cw_text_command(const char *command, const char *path);

/* Appends to a text that ends with NUL, in len bytes; what does not fit is cut off. */
void cw_text_append(char *text, size_t len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The part of a path after its last slash; borrowed. */
const char *cw_text_base_name(const char *path);
