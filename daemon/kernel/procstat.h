/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few files of /proc/PID that the loop may read: stat, schedstat, io and the list of children.
 * None of them takes the process's memory lock. With such a file, a rank that is stuck inside mmap
 * would block the daemon. cmdline and maps take the lock, so this file does not read them.
 *
 * proc_fd is a descriptor of the directory /proc/PID. It belongs to this process even if the pid is
 * reused. Any thread; a read of these files does not block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cw_procstat {
	char comm[16];
	char state; /* state letter of the kernel: R S D T t Z X … */
	pid_t ppid;
	/* User and system time of all threads. If we read a thread's file, only of this thread. */
	uint64_t cpu_ticks;
	/* User and system time of children that the process has waited for. */
	uint64_t child_cpu_ticks;
	uint64_t start_ticks; /* start time, in ticks since boot */
	uint32_t threads;
	/*
	 * True if the kernel showed us the fields that it hides from most users, such as exit_code.
	 */
	bool is_permitted;
	/* Address of the stack's start, different for each program; 0 = the kernel hides it. */
	uint64_t start_stack;
	int exit_code; /* exit status of a zombie, in the encoding of wait(2) */
};

/* Parses the text of a stat file, whose comm may contain any byte. Returns 0 or -EBADMSG. */
int cw_procstat_parse(const char *text, struct cw_procstat *ret);

/* Opens /proc/PID. Returns the descriptor (CLOEXEC) or -errno. */
int cw_procstat_open(pid_t pid);

/*
 * Reads stat. Returns 0 or -errno. -ESRCH: the process is gone and reaped. -EBUSY: it is in the
 * middle of execve(). The caller must then read no other file of it, because the read would wait
 * for the end of execve().
 */
int cw_procstat_read(int proc_fd, struct cw_procstat *ret);
/*
 * Like cw_procstat_read(), but also reads the fields that the kernel hides from most users
 * (daemon/kernel/closed_files.h).
 */
int cw_procstat_read_all(int proc_fd, struct cw_procstat *ret);
int cw_procstat_read_thread(int proc_fd, pid_t tid, struct cw_procstat *ret);

/*
 * Returns the age of a process with these start_ticks, by the clock that start_ticks uses. Always >
 * 0.
 */
int64_t cw_procstat_age_ns(uint64_t start_ticks);

/* Counters of the scheduler for one thread. */
struct cw_procsched {
	uint64_t cpu_ns;
	uint64_t runs; /* number of times that the thread got a CPU */
};

/*
 * Reads the counters of the main thread. Returns 0 or -errno. -ENOENT: the kernel has no schedstat.
 */
int cw_procstat_main_sched(int proc_fd, struct cw_procsched *ret);
/* Like cw_procstat_main_sched(), but for the thread tid. */
int cw_procstat_thread_sched(int proc_fd, pid_t tid, struct cw_procsched *ret);

/*
 * Returns how many bytes the process has moved. It is the larger of two counts: the bytes of its
 * read and write calls, and its storage I/O. Page faults on a mapped file appear only in the
 * storage I/O. Returns 0 or -errno. -EACCES: we may not see the counts.
 */
int cw_procstat_io_bytes(int proc_fd, uint64_t *ret_bytes);

/* Lists at most max thread ids. Returns 0 or -errno. */
int cw_procstat_threads(int proc_fd, pid_t *tids, size_t max, size_t *ret_n);

/*
 * Lists at most max children of the process's first 256 threads. The list is empty if the kernel
 * lacks CONFIG_PROC_CHILDREN. Returns 0 or -errno.
 */
int cw_procstat_children(int proc_fd, pid_t *pids, size_t max, size_t *ret_n);
/*
 * Lists at most max children of one thread. Returns their number. 0 = none, or the thread has
 * ended.
 */
size_t cw_procstat_children_of(int proc_fd, pid_t tid, pid_t *pids, size_t max);

/*
 * Reads a thread's tid in its own pid namespace, the innermost one, from "status". Returns 0 or
 * -errno. This file takes no memory lock. The kernel formats a page of text for it, so read it only
 * once per thread.
 */
int cw_procstat_own_tid(int proc_fd, pid_t tid, pid_t *ret);

/*
 * Reads the pid of the process that traces this process's first thread, from "status". Returns 0 or
 * -errno. -ESRCH: there is no tracer, or it is outside of our pid namespace.
 */
int cw_procstat_tracer(int proc_fd, pid_t *ret);

/* Returns the length in ns of a clock tick, the unit of the times in a stat file. */
int64_t cw_procstat_tick_ns(void);
