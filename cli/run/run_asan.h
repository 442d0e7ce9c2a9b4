/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether a program needs AddressSanitizer's runtime as its first library. */
#pragma once

#include <stddef.h>

/*
 * Finds `program` as execvp() would and reads its list of needed libraries. If the list has
 * "libasan.so.N", fills soname with it and returns 1. Otherwise returns 0, also for scripts, static
 * programs and unreadable files. Reads the file and executes no part of it.
 */
int run_asan_needed(const char *program, char *soname, size_t len);
