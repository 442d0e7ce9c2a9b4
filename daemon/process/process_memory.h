/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the registered processes cost the daemon in memory. A record says how many communicators and
 * ops it holds, and reading it takes memory in proportion: a hundred invented ones are half a
 * gigabyte. Loop thread only.
 */
#pragma once

#include <stddef.h>

#include "daemon/process/process.h"

/* Of all records together; those of sixteen ranks with 96 communicators each take 20 MiB. */
#define CW_PROCESSES_MAX_BYTES ((size_t)192 << 20)

size_t cw_process_memory(const struct cw_process *p);

/*
 * While all together take more than max_bytes: the costliest process of the user whose processes
 * take the most. NULL: they do not, or there is no memory to find out.
 */
struct cw_process *cw_processes_largest_memory_user(struct cw_process *table, size_t max_bytes);
