/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether a program needs AddressSanitizer's runtime as its first library. */
#pragma once

#include <stddef.h>

/*
 * Finds `program` as execvp() would and reads its list of needed libraries. If the list has
 * "libasan.so.N", fills soname with that name and returns 1. Otherwise returns 0; scripts, static
 * programs and unreadable files also give 0. Reads the file and executes no part of it.
 */
int run_asan_needed(const char *program, char *soname, size_t len);
