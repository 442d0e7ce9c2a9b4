/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for secrets that children must not see. Its pages are empty after a fork and absent from
 * core dumps, and we overwrite each block when it is freed. Meant for some kilobytes of URLs and
 * headers, and for a library that handles them (libcurl).
 *
 * The functions work like malloc() and friends, except for errno. Freed pages stay with us for the
 * next caller. Main thread only. In a child, all earlier allocations read as zeros, and
 * cw_secret_free() ignores them.
 */
#pragma once

#include <stddef.h>

void *cw_secret_malloc(size_t size) __attribute__((malloc));
void *cw_secret_calloc(size_t n, size_t size) __attribute__((malloc));
/* Never grows a block in place. Copies it and overwrites the old block. */
void *cw_secret_realloc(void *p, size_t size);
char *cw_secret_strdup(const char *text) __attribute__((malloc));
/* Overwrites and frees a block. Takes NULL. */
void cw_secret_free(void *p);
