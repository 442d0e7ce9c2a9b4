/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates memory for secrets that children must not see. Children see zeros in these pages after
 * a fork, and core dumps lack them. We overwrite each block when it is freed. The allocator is
 * meant for some kilobytes of URLs and headers, and for a library that handles them (libcurl).
 *
 * The functions work like malloc(), calloc(), realloc() and free(), but do not set errno. We keep
 * freed pages for later allocations. Main thread only. In a child, all allocations of the parent
 * read as zeros, and cw_secret_free() ignores them.
 */
#pragma once

#include <stddef.h>

void *cw_secret_malloc(size_t size) __attribute__((malloc));
void *cw_secret_calloc(size_t n, size_t size) __attribute__((malloc));
/* Never grows a block in place: it copies the data to a new block and overwrites the old one. */
void *cw_secret_realloc(void *p, size_t size);
char *cw_secret_strdup(const char *text) __attribute__((malloc));
/* Overwrites and frees a block. Takes NULL. */
void cw_secret_free(void *p);
