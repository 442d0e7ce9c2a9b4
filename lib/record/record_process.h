/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the flight records of living processes through their descriptors in /proc, with the
 * caller's own rights. A child inherits its parent's record, so several processes may hold the
 * same one.
 *
 * Not thread-safe. Reads /proc; does not wait for the processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Opens the record of a process; the caller owns the descriptor. -ENOENT if there is no record or
 * no such process; -EACCES, -EPERM …; err says which.
 */
int cw_record_process_open(pid_t pid, struct cw_err *err);

/*
 * Calls fn, which takes fd, for each record among the descriptors of a process. A child with a
 * record of its own still holds its parent's too. Stops at the first non-zero result of fn and
 * returns it. -errno: we cannot read the descriptors, or cannot open a record.
 */
typedef int (*cw_record_process_fn)(pid_t pid, int fd, void *user);
int cw_record_process_each_of(pid_t pid, cw_record_process_fn fn, void *user);

/*
 * Calls fn for each open record of each process, in the order of /proc. A rank's record appears in
 * the rank, in its children, and in the daemon. fn takes fd and returns 0, or -errno, which ends
 * the walk and becomes the result. 0 or -errno.
 */
int cw_record_process_each(cw_record_process_fn fn, void *user);

/*
 * Returns whether process pid (in our namespace) has the pid own_pid in its own PID namespace and
 * began at start_ticks (field 22 of its stat; 0 = not known).
 */
bool cw_record_process_is(pid_t pid, int64_t own_pid, uint64_t start_ticks);
