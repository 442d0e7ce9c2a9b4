/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of an example program agree on NCCL's unique id. Blocking, one thread. */
#pragma once

#include <stddef.h>

/*
 * Rank 0 hands @buf to @world - 1 callers at @addr:@port; the others fetch it from there, waiting
 * until somebody listens. Returns 0 or -errno.
 */
int train_store_serve(const char *addr, const char *port, int world, const void *buf, size_t len);
int train_store_fetch(const char *addr, const char *port, void *buf, size_t len);

/* The same through a file that rank 0 creates at once and complete. */
int train_file_put(const char *path, const void *buf, size_t len);
int train_file_get(const char *path, void *buf, size_t len);
