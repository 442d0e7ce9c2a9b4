/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what children must not see: it lies in pages that a fork finds empty and that core
 * dumps leave out, and is overwritten when it is given back. For some kilobytes of URLs and
 * headers, and for a library that handles them (libcurl).
 *
 * As malloc() and its like, but for errno. Pages are kept for the next caller, not given back. Main
 * thread only. In a child all that was allocated before reads as zeros; cw_secret_free() ignores
 * it.
 */
#pragma once

#include <stddef.h>

void *cw_secret_malloc(size_t size) __attribute__((malloc));
void *cw_secret_calloc(size_t n, size_t size) __attribute__((malloc));
/* Never in place where it grows: what it held is overwritten. */
void *cw_secret_realloc(void *p, size_t size);
char *cw_secret_strdup(const char *text) __attribute__((malloc));
/* Takes NULL. */
void cw_secret_free(void *p);
