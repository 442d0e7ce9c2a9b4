/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes NCCL's unique id to the ranks of an example program. Blocking, one thread. */
#pragma once

#include <stddef.h>

/*
 * Rank 0 sends @buf to @world - 1 callers at @addr:@port. The others fetch it from there and wait
 * until rank 0 listens. Returns 0 or -errno.
 */
int train_store_serve(const char *addr, const char *port, int world, const void *buf, size_t len);
int train_store_fetch(const char *addr, const char *port, void *buf, size_t len);

/*
 * Like train_store_serve() and train_store_fetch(), but through a file. Other processes see the
 * file only when it is complete.
 */
int train_file_put(const char *path, const void *buf, size_t len);
int train_file_get(const char *path, void *buf, size_t len);
