/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight records of living processes, as their descriptors in /proc show them: with the caller's
 * own rights. Children inherit a record that is not theirs; of such processes each has the same
 * one.
 *
 * Not thread-safe. Reads /proc; does not wait for the processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * A descriptor of the process's record, the caller's. -ENOENT when it has none, or is not there;
 * -EACCES, -EPERM …; err says which.
 */
int cw_record_process_open(pid_t pid, struct cw_err *err);

/*
 * Calls fn, which takes fd, for each record among the descriptors of a process; a child that has
 * one of its own still has its parent's. Ends with what fn returns unless that is 0. -errno: there
 * are no descriptors to look at, or a record cannot be opened.
 */
typedef int (*cw_record_process_fn)(pid_t pid, int fd, void *user);
int cw_record_process_each_of(pid_t pid, cw_record_process_fn fn, void *user);

/*
 * Calls fn for each record that each process has open, in the order of /proc: that of a rank is met
 * in the rank, in children of it, and in the daemon. fn takes fd, returns 0, or -errno, which ends
 * it and is returned. 0 or -errno.
 */
int cw_record_process_each(cw_record_process_fn fn, void *user);

/*
 * Whether the process that is pid here calls itself own_pid, in its own PID namespace, and began at
 * start_ticks (field 22 of its stat; 0 = not known).
 */
bool cw_record_process_is(pid_t pid, int64_t own_pid, uint64_t start_ticks);
