/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few bits of /proc that capture children read. Reading /proc of a stuck process can hang (it
 * may take the process's memory lock): never call this from the daemon's loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Threads listed; a rank has some hundred at most. */
#define CW_PROCFS_MAX_THREADS 256u

/*
 * Reads at most len - 1 bytes of /proc/<pid>/<file>, NUL-terminated. Returns their number or
 * -errno.
 */
ssize_t cw_procfs_read(pid_t pid, const char *file, char *buf, size_t len);
/* The same of /proc/<pid>/task/<tid>/<file>. */
ssize_t cw_procfs_read_task(pid_t pid, pid_t tid, const char *file, char *buf, size_t len);

struct cw_procfs_stat {
	char name[64];
	char state;
	uint64_t user_ticks, system_ticks; /* of sysconf(_SC_CLK_TCK) */
	uint64_t start_ticks;
};
/* Parses the text of a stat file. 0 or -EBADMSG. Pure. */
int cw_procfs_parse_stat(const char *text, struct cw_procfs_stat *ret);
/* 0 or -errno (-ENOENT: gone). tid 0 = the process as a whole. */
int cw_procfs_stat(pid_t pid, pid_t tid, struct cw_procfs_stat *ret);

/*
 * Does the thread run as this user and nothing else: real, effective, saved and file system ids? A
 * program started from a set-user-ID file does not. False also when it cannot be read.
 */
bool cw_procfs_is_only(pid_t pid, pid_t tid, uid_t uid);
/* The same of the text of a status file. Pure. */
bool cw_procfs_parse_is_only(const char *text, uid_t uid);

struct cw_procfs_syscall {
	int64_t number; /* -1 = blocked, but not in a system call */
	uint64_t sp, pc;
};
/* Parses the text of a syscall file. 0, -EAGAIN: the thread is running, -EBADMSG. Pure. */
int cw_procfs_parse_syscall(const char *text, struct cw_procfs_syscall *ret);

/*
 * Thread ids, main thread first, then ascending. Returns how many were written, at most max, or
 * -errno; *ret_total = how many there are.
 */
int cw_procfs_threads(pid_t pid, pid_t *tids, unsigned max, unsigned *ret_total);
