/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose Python stacks we read. To open the process, a caller needs the right to trace it
 * (ptrace(2), PTRACE_MODE_ATTACH_FSCREDS). To read, it needs no right and makes one system call,
 * pread(2). The caller can therefore give up its rights in between. The descriptor belongs to the
 * program that ran when we opened the process: after an execve() the reads fail.
 *
 * A read blocks while the kernel's lock on the process's memory is held. A daemon must therefore
 * call this in a child only.
 */
#pragma once

#include <sys/types.h>

#include "python/reader/python_reader.h"

struct cw_python_process;

/*
 * Opens the process's memory, and lists its program files and threads. Returns 0; -EACCES or
 * -EPERM: no right to trace the process; -ENOENT or -ESRCH: the process has ended, or is a zombie;
 * or another -errno.
 */
int cw_python_process_open(pid_t pid, struct cw_python_process **ret);
/*
 * Makes a process whose memory the caller reads, for example from a core file. bases: addresses at
 * which program files begin, likely interpreters first. tasks: its threads. Borrows `memory`,
 * copies the rest. Returns 0 or -ENOMEM.
 */
int cw_python_process_of(const struct cw_python_memory *memory, const uint64_t *bases,
			 size_t n_bases, const struct cw_python_task *tasks, size_t n_tasks,
			 struct cw_python_process **ret);
/* Takes NULL; returns NULL. */
struct cw_python_process *cw_python_process_free(struct cw_python_process *p);

/*
 * Returns true if we may read these bytes without waiting for a server, such as the program behind
 * a FUSE file.
 */
typedef bool (*cw_python_may_read_fn)(void *user, uint64_t from, size_t len);
/* Limits later reads to bytes for which the function returns true. Borrows user. */
void cw_python_process_limit(struct cw_python_process *p, cw_python_may_read_fn may_read,
			     void *user);

/*
 * Reads all threads, like cw_python_read_threads(). Sets *ret to 0 if no threads were read
 * (CW_PYTHON_NONE and the like).
 */
enum cw_python_result cw_python_process_read(struct cw_python_process *p, cw_python_thread_fn fn,
					     void *user, struct cw_python_read_summary *ret);
