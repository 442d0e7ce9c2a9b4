/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the memory that registered processes cost the daemon. A record states its number of
 * communicators and ops, and reading the record takes memory in proportion. A user can invent these
 * numbers: a hundred such records would take half a gigabyte. Loop thread only.
 */
#pragma once

#include <stddef.h>

#include "daemon/process/process.h"

/* Maximum memory for all records together. Sixteen ranks with 96 communicators each take 20 MiB. */
#define CW_PROCESSES_MAX_BYTES ((size_t)192 << 20)

size_t cw_process_memory(const struct cw_process *p);

/*
 * Returns the process to drop if all processes together take more than max_bytes. It is the
 * costliest process of the user whose processes take the most. NULL = they do not take more, or we
 * are out of memory.
 */
struct cw_process *cw_processes_largest_memory_user(struct cw_process *table, size_t max_bytes);
