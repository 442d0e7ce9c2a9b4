/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of /proc that capture children read. Some of these files take the process's memory
 * lock, so reading /proc of a stuck process can hang. The daemon's loop must therefore not call
 * these functions. The only exception is cw_procfs_may_see(). It reads status and the link to a
 * namespace, and these take no lock that a program can hold.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Maximum number of threads that we list. A rank has at most some hundred. */
#define CW_PROCFS_MAX_THREADS 256u

/*
 * Reads at most len - 1 bytes of /proc/<pid>/<file>, and appends a NUL. Returns the number of bytes
 * or -errno.
 */
ssize_t cw_procfs_read(pid_t pid, const char *file, char *buf, size_t len);
/* Like cw_procfs_read(), but for an open file. */
ssize_t cw_procfs_read_fd(int fd, char *buf, size_t len);
/* Like cw_procfs_read(), but for /proc/<pid>/task/<tid>/<file>. */
ssize_t cw_procfs_read_task(pid_t pid, pid_t tid, const char *file, char *buf, size_t len);

struct cw_procfs_stat {
	char name[64];
	char state;
	uint64_t user_ticks, system_ticks; /* in ticks of sysconf(_SC_CLK_TCK) */
	uint64_t start_ticks;
};
/* Parses the text of a stat file. Returns 0 or -EBADMSG. Depends only on the text. */
int cw_procfs_parse_stat(const char *text, struct cw_procfs_stat *ret);
/*
 * Reads and parses a stat file. tid: 0 = the process as a whole. Returns 0 or -errno. -ENOENT: the
 * process or thread is gone.
 */
int cw_procfs_stat(pid_t pid, pid_t tid, struct cw_procfs_stat *ret);

/*
 * We show a user only facts that this user may read of the process directly (ptrace(2),
 * PTRACE_MODE_READ_FSCREDS). The kernel hides some programs from their own user: a program that is
 * set-user-ID or set-group-ID, has file capabilities, or may be run but not read. A program may
 * also hide itself (PR_SET_DUMPABLE).
 *
 * The owner of /proc/PID/status shows this: it is root unless the program is dumpable. (The
 * directory itself always belongs to the effective user.) A program with special ids or
 * capabilities may declare itself dumpable again, so we check ids and capabilities, too.
 * Capabilities in a user namespace of the same user do no harm.
 */
#define CW_PROCFS_NOT_VISIBLE                                                                      \
	"the process is not readable for its user: another user or group, capabilities, a "        \
	"program file without read permission, or PR_SET_DUMPABLE"

struct cw_procfs_view {
	/* Descriptor of /proc/PID; it belongs to this process even if the pid is reused. */
	int proc_fd;
	uid_t uid;
	uint64_t start_stack; /* address of the stack's start; it differs from program to program */
};

/*
 * Opens a view of the process for its user. Returns 0 or -errno. -ENOENT: the process is gone, or
 * the pid belongs to another process. -EPERM: the user may not see the program. After 0, close the
 * view with cw_procfs_view_close().
 */
int cw_procfs_view_open(pid_t pid, uint64_t start_ticks, uid_t uid, struct cw_procfs_view *ret);
void cw_procfs_view_close(struct cw_procfs_view *view);
/*
 * True if the process still runs the same program and its user may still see it. Call this after
 * the capture. If it returns false, discard everything that you have read. It also returns false if
 * the process is gone.
 */
bool cw_procfs_view_holds(const struct cw_procfs_view *view);
/*
 * True if the user may see this thread. proc_fd: a descriptor of /proc/PID; tid: 0 = the first
 * thread.
 */
bool cw_procfs_may_see(int proc_fd, pid_t tid, uid_t uid);

struct cw_procfs_ids {
	uid_t uid[4]; /* in this order: real, effective, saved, file system */
	gid_t gid[4];
	uint64_t permitted; /* permitted capabilities, as bits */
};
/*
 * Parses the ids and capabilities in the text of a status file. Returns 0 or -EBADMSG. Depends only
 * on the text.
 */
int cw_procfs_parse_ids(const char *text, struct cw_procfs_ids *ret);

struct cw_procfs_syscall {
	/* Number of the system call; -1 = the thread is blocked outside of a system call. */
	int64_t number;
	uint64_t sp, pc;
};
/*
 * Parses the text of a syscall file. Returns 0, -EBADMSG, or -EAGAIN if the thread is running.
 * Depends only on the text.
 */
int cw_procfs_parse_syscall(const char *text, struct cw_procfs_syscall *ret);

/*
 * Lists thread ids: the main thread, then the others in ascending order. Returns the number of ids
 * in tids, at most max, or -errno. *ret_total: the number of all threads.
 */
int cw_procfs_threads(pid_t pid, pid_t *tids, unsigned max, unsigned *ret_total);
