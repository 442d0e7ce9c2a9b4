/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program wants AddressSanitizer's runtime to be the first library. */
#pragma once

#include <stddef.h>

/*
 * Looks `program` up as execvp() would and reads its list of needed libraries. Fills soname with
 * "libasan.so.N" and returns 1 when it is among them, 0 when not (scripts, static programs and
 * files that cannot be read included). Reads the file; nothing of it is executed.
 */
int run_asan_needed(const char *program, char *soname, size_t len);
