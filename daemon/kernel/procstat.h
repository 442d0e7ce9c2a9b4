/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few files of /proc/PID that the loop may read: stat, schedstat, io and the list of children.
 * None of them takes the process's memory lock. Otherwise a rank that is stuck inside mmap would
 * block the daemon. cmdline and maps take the lock and are therefore not here.
 *
 * proc_fd is a descriptor of the directory /proc/PID. It stays with that process even if the pid is
 * reused. Any thread; a read of /proc does not block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cw_procstat {
	char comm[16];
	char state; /* R S D T t Z X … as the kernel writes it */
	pid_t ppid;
	/* User + system time of all threads, or of one thread if we read a thread's file. */
	uint64_t cpu_ticks;
	uint64_t child_cpu_ticks; /* of children that the process has waited for */
	uint64_t start_ticks;     /* since boot */
	uint32_t threads;
	/* The kernel showed us the fields that it hides from strangers, such as exit_code. */
	bool is_permitted;
	uint64_t start_stack; /* start of the stack, different for each program; 0 for strangers */
	int exit_code;        /* of a zombie, encoded as for wait(2) */
};

/* Parses the text of a stat file; the comm may hold any byte. 0 or -EBADMSG. */
int cw_procstat_parse(const char *text, struct cw_procstat *ret);

/* Opens /proc/PID. Returns the descriptor (CLOEXEC) or -errno. */
int cw_procstat_open(pid_t pid);

/*
 * Reads stat. 0; -ESRCH: the process is gone and reaped; -EBUSY: it is in the middle of execve();
 * or another -errno. After -EBUSY the caller must not read its other files, because such a read
 * waits for the execve().
 */
int cw_procstat_read(int proc_fd, struct cw_procstat *ret);
int cw_procstat_read_thread(int proc_fd, pid_t tid, struct cw_procstat *ret);

/*
 * Returns the age of a process with these start_ticks, by the clock that counts them. Always > 0.
 */
int64_t cw_procstat_age_ns(uint64_t start_ticks);

/* The scheduler's counts for the main thread alone. */
struct cw_procsched {
	uint64_t cpu_ns;
	uint64_t runs; /* how often it ran on a CPU */
};

/* Reads the scheduler's counts. 0 or -errno (-ENOENT: the kernel has no schedstat). */
int cw_procstat_main_sched(int proc_fd, struct cw_procsched *ret);
/* Like cw_procstat_main_sched(), but for one thread. */
int cw_procstat_thread_sched(int proc_fd, pid_t tid, struct cw_procsched *ret);

/*
 * Reads the bytes that the process has moved: the larger of the bytes in its read and write calls
 * and its storage I/O. Page faults on a mapped file appear only in the latter. 0 or -errno
 * (-EACCES: we may not see it).
 */
int cw_procstat_io_bytes(int proc_fd, uint64_t *ret_bytes);

/* Lists at most max thread ids. 0 or -errno. */
int cw_procstat_threads(int proc_fd, pid_t *tids, size_t max, size_t *ret_n);

/*
 * Lists at most max children, those of all threads. Scans no more than 256 threads. Finds no
 * children if the kernel lacks CONFIG_PROC_CHILDREN. 0 or -errno.
 */
int cw_procstat_children(int proc_fd, pid_t *pids, size_t max, size_t *ret_n);
/* Lists the children of one thread. Returns their number, which is 0 if the thread has ended. */
size_t cw_procstat_children_of(int proc_fd, pid_t tid, pid_t *pids, size_t max);

/*
 * Reads a thread's tid in its own pid namespace, the innermost one, from "status". This file takes
 * no memory lock, but the kernel formats a page of text for it, so read it once per thread. 0 or
 * -errno.
 */
int cw_procstat_own_tid(int proc_fd, pid_t tid, pid_t *ret);

/*
 * Reads the pid of the process that traces this one's first thread, from "status". 0 or -errno
 * (-ESRCH: there is no tracer, or none in this pid namespace).
 */
int cw_procstat_tracer(int proc_fd, pid_t *ret);

/* Returns the ns per tick of the fields above. */
int64_t cw_procstat_tick_ns(void);
