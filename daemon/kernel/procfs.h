/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few bits of /proc that capture children read. Reading /proc of a stuck process can hang (it
 * may take the process's memory lock): never call this from the daemon's loop, but for
 * cw_procfs_may_see(): status and the link to a namespace take no lock that a program could hold.
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
 * What a process's user may see of it by himself, which is what he is shown of it (ptrace(2),
 * PTRACE_MODE_READ_FSCREDS): not of a program that was set-user-ID or set-group-ID, that has file
 * capabilities or that he may run but not read, nor of one that has withdrawn itself
 * (PR_SET_DUMPABLE).
 *
 * The kernel says so by the owner of /proc/PID/status: root, unless the program is dumpable; the
 * directory itself belongs to the effective user whatever happens. To that come the ids and
 * capabilities, which a program may keep when it declares itself dumpable anew; capabilities in a
 * user namespace of the user's own are his.
 */
#define CW_PROCFS_NOT_VISIBLE                                                                      \
	"the program is not its user's to see: another user or group, capabilities, a file that "  \
	"may be run but not read, or withdrawn (PR_SET_DUMPABLE)"

struct cw_procfs_view {
	int proc_fd; /* of /proc/PID: stays with that process, whoever gets the number next */
	uid_t uid;
	uint64_t start_stack; /* another program has another */
};

/*
 * Opens a view of the process for its user. 0, -ENOENT (gone, or another one), -EPERM (not his to
 * see), -errno. Close it with cw_procfs_view_close().
 */
int cw_procfs_view_open(pid_t pid, uint64_t start_ticks, uid_t uid, struct cw_procfs_view *ret);
void cw_procfs_view_close(struct cw_procfs_view *view);
/*
 * Is it still the same program, and still his to see? Asked after the capture: what was read before
 * a false answer is to be thrown away. False also when the process is gone.
 */
bool cw_procfs_view_holds(const struct cw_procfs_view *view);
/* May the user see this thread? proc_fd: of /proc/PID; tid 0 = the process's first. */
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
