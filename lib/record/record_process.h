/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the flight records of living processes. It uses their descriptors in /proc and the caller's
 * own rights. A child inherits its parent's record, so several processes may hold the same record.
 *
 * Not thread-safe. Reads /proc; does not wait for the processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Opens the record of a process and returns its descriptor, which the caller owns. Returns -ENOENT
 * if there is no such process or the process has no record; -EACCES, -EPERM …. err says which.
 */
int cw_record_process_open(pid_t pid, struct cw_err *err);

/*
 * Calls fn for each record among the descriptors of a process; fn takes fd. A child with a record
 * of its own still holds its parent's record, too. A non-zero result of fn stops the walk, and the
 * walk returns that result. Returns -errno if we cannot read the descriptors or open a record.
 */
typedef int (*cw_record_process_fn)(pid_t pid, int fd, void *user);
int cw_record_process_each_of(pid_t pid, cw_record_process_fn fn, void *user);

/*
 * Calls fn for each open record of each process, in the order of /proc. The record of a rank
 * appears in the rank, in its children, and in the daemon. fn takes fd. fn returns 0 to continue,
 * or -errno to end the walk with this error. Returns 0 or -errno.
 */
int cw_record_process_each(cw_record_process_fn fn, void *user);

/*
 * True if pid, a number in our PID namespace, still belongs to the expected process. In its own PID
 * namespace, the expected process has the number own_pid. It began at start_ticks (field 22 of its
 * stat; 0 = not known).
 */
bool cw_record_process_is(pid_t pid, int64_t own_pid, uint64_t start_ticks);
