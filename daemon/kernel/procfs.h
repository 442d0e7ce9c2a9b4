/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of /proc that capture children read. Reading /proc of a stuck process can hang,
 * because it may take the process's memory lock, so the daemon's loop must never call these. The
 * exception is cw_procfs_may_see(): status and the link to a namespace take no lock that a program
 * could hold.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Limit of listed threads; a rank has some hundred at most. */
#define CW_PROCFS_MAX_THREADS 256u

/*
 * Reads at most len - 1 bytes of /proc/<pid>/<file>, and appends a NUL. Returns their number
 * or -errno.
 */
ssize_t cw_procfs_read(pid_t pid, const char *file, char *buf, size_t len);
/* The same of what is open. */
ssize_t cw_procfs_read_fd(int fd, char *buf, size_t len);
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
 * We show a user only what he may see of a process himself (ptrace(2), PTRACE_MODE_READ_FSCREDS).
 * He may not look into a program that was set-user-ID or set-group-ID, that has file
 * capabilities, or that he may run but not read. Nor may he look into a program that has
 * withdrawn itself (PR_SET_DUMPABLE).
 *
 * The kernel shows this by the owner of /proc/PID/status: root, unless the program is dumpable.
 * (The directory itself always belongs to the effective user.) We also check ids and capabilities:
 * a program may keep those when it declares itself dumpable again. Capabilities in a user namespace
 * of the user's own are his.
 */
#define CW_PROCFS_NOT_VISIBLE                                                                      \
	"the program is not its user's to see: another user or group, capabilities, a file that "  \
	"may be run but not read, or withdrawn (PR_SET_DUMPABLE)"

struct cw_procfs_view {
	int proc_fd; /* of /proc/PID: stays with that process even if the pid is reused */
	uid_t uid;
	uint64_t start_stack; /* each program has its own */
};

/*
 * Opens a view of the process for its user. 0, -ENOENT (gone, or another process), -EPERM (the user
 * may not see it), -errno. Close it with cw_procfs_view_close().
 */
int cw_procfs_view_open(pid_t pid, uint64_t start_ticks, uid_t uid, struct cw_procfs_view *ret);
void cw_procfs_view_close(struct cw_procfs_view *view);
/*
 * True if it is still the same program, and its user may still see it. Call it after the capture;
 * on a false answer, discard everything you have read. False also if the process is gone.
 */
bool cw_procfs_view_holds(const struct cw_procfs_view *view);
/* True if the user may see this thread. proc_fd: of /proc/PID; tid 0 = the process's first. */
bool cw_procfs_may_see(int proc_fd, pid_t tid, uid_t uid);

struct cw_procfs_ids {
	uid_t uid[4]; /* real, effective, saved, file system */
	gid_t gid[4];
	uint64_t permitted; /* capabilities */
};
/* Of the text of a status file. 0 or -EBADMSG. Pure. */
int cw_procfs_parse_ids(const char *text, struct cw_procfs_ids *ret);

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
