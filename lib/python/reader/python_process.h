/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose Python stacks we read. Opening needs the right to trace the process (ptrace(2),
 * PTRACE_MODE_ATTACH_FSCREDS). Reading needs no right and makes one system call, pread(2), so a
 * caller can give up its rights in between. The descriptor stays with the program that ran at the
 * time of the opening: after an execve() it reads nothing.
 *
 * Blocks while the process's memory lock is held, so a daemon calls this in a child only.
 */
#pragma once

#include <sys/types.h>

#include "python/reader/python_reader.h"

struct cw_python_process;

/*
 * Opens the process's memory, and lists its program files and threads. 0; -EACCES or -EPERM: no
 * right to trace it; -ENOENT or -ESRCH: it is gone; or another -errno. A zombie is gone, too.
 */
int cw_python_process_open(pid_t pid, struct cw_python_process **ret);
/* Takes NULL; returns NULL. */
struct cw_python_process *cw_python_process_free(struct cw_python_process *p);

/* True if we may read these bytes without waiting for a server. */
typedef bool (*cw_python_may_read_fn)(void *user, uint64_t from, size_t len);
/* From now on reads only bytes for which the function returns true. user: borrowed. */
void cw_python_process_limit(struct cw_python_process *p, cw_python_may_read_fn may_read,
			     void *user);

/* Reads all threads: see cw_python_read_threads(). For CW_PYTHON_NONE and the like, *ret is 0. */
enum cw_python_result cw_python_process_read(struct cw_python_process *p, cw_python_thread_fn fn,
					     void *user, struct cw_python_read_summary *ret);
