/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that registered processes cost the daemon. A record declares how many communicators
 * and ops it holds, and reading it takes memory in proportion. A user can invent these numbers: a
 * hundred such records take half a gigabyte. Loop thread only.
 */
#pragma once

#include <stddef.h>

#include "daemon/process/process.h"

/*
 * The limit of all records together. The records of sixteen ranks with 96 communicators each take
 * 20 MiB.
 */
#define CW_PROCESSES_MAX_BYTES ((size_t)192 << 20)

size_t cw_process_memory(const struct cw_process *p);

/*
 * If all processes together take more than max_bytes, returns the process to drop: the costliest
 * one of the user with the highest sum. NULL: they do not take more, or we are out of memory.
 */
struct cw_process *cw_processes_largest_memory_user(struct cw_process *table, size_t max_bytes);
