/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out if a program needs AddressSanitizer's runtime as its first library. */
#pragma once

#include <stddef.h>

/*
 * Finds `program` as execvp() would and reads its list of needed libraries. Returns 1 and fills
 * soname with "libasan.so.N" if the list has it. Returns 0 if not, also for scripts, static
 * programs and unreadable files. Reads the file and executes no part of it.
 */
int run_asan_needed(const char *program, char *soname, size_t len);
