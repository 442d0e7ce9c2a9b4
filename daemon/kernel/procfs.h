/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of /proc that capture children read. Reading /proc of a stuck process can hang, because
 * it may take the process's memory lock, so the daemon's loop must never call these functions. The
 * exception is cw_procfs_may_see(): it reads status and the link to a namespace, and these take no
 * lock that a program could hold.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Limit of listed threads; a rank has some hundred at most. */
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
/* Parses the text of a stat file. 0 or -EBADMSG. Pure. */
int cw_procfs_parse_stat(const char *text, struct cw_procfs_stat *ret);
/*
 * Reads and parses a stat file; tid 0 = of the process as a whole. 0 or -errno (-ENOENT: it is
 * gone).
 */
int cw_procfs_stat(pid_t pid, pid_t tid, struct cw_procfs_stat *ret);

/*
 * We show a user only what he may see of a process himself (ptrace(2), PTRACE_MODE_READ_FSCREDS).
 * He may not look into a program that is set-user-ID or set-group-ID, that has file capabilities,
 * or that he may run but not read. Nor may he look into a program that has withdrawn itself
 * (PR_SET_DUMPABLE).
 *
 * The kernel shows this by the owner of /proc/PID/status: it is root, unless the program is
 * dumpable. (The directory itself always belongs to the effective user.) We also check ids and
 * capabilities, because a program may keep those when it declares itself dumpable again.
 * Capabilities in a user namespace that the user owns are his.
 */
#define CW_PROCFS_NOT_VISIBLE                                                                      \
	"the program is not its user's to see: another user or group, capabilities, a file that "  \
	"may be run but not read, or withdrawn (PR_SET_DUMPABLE)"

struct cw_procfs_view {
	int proc_fd; /* descriptor of /proc/PID; stays with the process even if the pid is reused */
	uid_t uid;
	uint64_t start_stack; /* start of the stack; differs from program to program */
};

/*
 * Opens a view of the process for its user. 0; -ENOENT: the process is gone, or the pid belongs to
 * another one; -EPERM: the user may not see it; or another -errno. Close it with
 * cw_procfs_view_close().
 */
int cw_procfs_view_open(pid_t pid, uint64_t start_ticks, uid_t uid, struct cw_procfs_view *ret);
void cw_procfs_view_close(struct cw_procfs_view *view);
/*
 * True if the process still runs the same program, and its user may still see it. Call it after the
 * capture. If it returns false, discard everything you have read. It also returns false if the
 * process is gone.
 */
bool cw_procfs_view_holds(const struct cw_procfs_view *view);
/*
 * True if the user may see this thread. proc_fd is a descriptor of /proc/PID; tid 0 = the first
 * thread.
 */
bool cw_procfs_may_see(int proc_fd, pid_t tid, uid_t uid);

struct cw_procfs_ids {
	uid_t uid[4]; /* real, effective, saved, file system */
	gid_t gid[4];
	uint64_t permitted; /* capabilities */
};
/* Parses the text of a status file. 0 or -EBADMSG. Pure. */
int cw_procfs_parse_ids(const char *text, struct cw_procfs_ids *ret);

struct cw_procfs_syscall {
	int64_t number; /* -1 = blocked, but not in a system call */
	uint64_t sp, pc;
};
/* Parses the text of a syscall file. 0; -EAGAIN: the thread is running; -EBADMSG. Pure. */
int cw_procfs_parse_syscall(const char *text, struct cw_procfs_syscall *ret);

/*
 * Lists thread ids, the main thread first, then ascending. Returns the number of ids in tids, at
 * most max, or -errno. *ret_total is the number of all threads.
 */
int cw_procfs_threads(pid_t pid, pid_t *tids, unsigned max, unsigned *ret_total);
