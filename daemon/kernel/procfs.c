/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"

/* Maximum number of threads of a process that we list and sort. No job has that many. */
#define MAX_LISTED 65536u

ssize_t cw_procfs_read_fd(int fd, char *buf, size_t len)
{
	size_t used = 0;

	while (used < len - 1) {
		ssize_t n = read(fd, buf + used, len - 1 - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	buf[used] = '\0';
	return (ssize_t)used;
}

static ssize_t read_at(int dir_fd, const char *path, char *buf, size_t len)
{
	_cleanup_(closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : cw_procfs_read_fd(fd, buf, len);
}

ssize_t cw_procfs_read(pid_t pid, const char *file, char *buf, size_t len)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return read_at(AT_FDCWD, path, buf, len);
}

ssize_t cw_procfs_read_task(pid_t pid, pid_t tid, const char *file, char *buf, size_t len)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	return read_at(AT_FDCWD, path, buf, len);
}

int cw_procfs_parse_stat(const char *text, struct cw_procfs_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	size_t len;

	/*
	 * The name is between the first '(' and the last ')'. It may contain any byte, also blanks
	 * and parentheses.
	 */
	if (!open || !close || close < open)
		return -EBADMSG;
	/* Read fields 3, 14, 15 and 22 of proc(5). */
	if (sscanf(close + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
		   " %*s %*s %*s %*s %*s %*s %" SCNu64,
		   &ret->state, &ret->user_ticks, &ret->system_ticks, &ret->start_ticks) != 4)
		return -EBADMSG;
	len = (size_t)(close - open - 1);
	if (len >= sizeof(ret->name))
		len = sizeof(ret->name) - 1;
	memcpy(ret->name, open + 1, len);
	ret->name[len] = '\0';
	return 0;
}

int cw_procfs_stat(pid_t pid, pid_t tid, struct cw_procfs_stat *ret)
{
	char text[1024];
	ssize_t n = tid ? cw_procfs_read_task(pid, tid, "stat", text, sizeof(text))
			: cw_procfs_read(pid, "stat", text, sizeof(text));

	if (n == -ESRCH)
		return -ENOENT;
	return n < 0 ? (int)n : cw_procfs_parse_stat(text, ret);
}

/*
 * Finds the line with this key. Skips the first line, which has the program's name. The kernel
 * escapes newlines in the name, so a program cannot forge a line.
 */
static const char *find_line(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n'))
		if (strncmp(line + 1, key, len) == 0)
			return line + 1 + len;
	return NULL;
}

int cw_procfs_parse_ids(const char *text, struct cw_procfs_ids *ret)
{
	const char *uid = find_line(text, "Uid:"), *gid = find_line(text, "Gid:"),
		   *permitted = find_line(text, "CapPrm:");

	if (!uid || !gid || !permitted ||
	    sscanf(uid, "%u %u %u %u", &ret->uid[0], &ret->uid[1], &ret->uid[2], &ret->uid[3]) !=
		    4 ||
	    sscanf(gid, "%u %u %u %u", &ret->gid[0], &ret->gid[1], &ret->gid[2], &ret->gid[3]) !=
		    4 ||
	    sscanf(permitted, "%" SCNx64, &ret->permitted) != 1)
		return -EBADMSG;
	return 0;
}

/* True if the user owns the process's user namespace. Root owns the initial namespace. */
static bool is_namespace_of(int proc_fd, uid_t uid)
{
	_cleanup_(closep) int ns = openat(proc_fd, "ns/user", O_RDONLY | O_CLOEXEC);
	uid_t owner;

	return ns >= 0 && ioctl(ns, NS_GET_OWNER_UID, &owner) == 0 && owner == uid;
}

static bool has_ids_of(int proc_fd, const struct cw_procfs_ids *ids, uid_t uid)
{
	for (unsigned i = 0; i < 4; i++)
		if (ids->uid[i] != uid || ids->gid[i] != ids->gid[0])
			return false;
	return uid == 0 || !ids->permitted || is_namespace_of(proc_fd, uid);
}

bool cw_procfs_may_see(int proc_fd, pid_t tid, uid_t uid)
{
	char name[40] = "status", text[4096];
	struct cw_procfs_ids ids;
	const char *state;
	struct stat st;

	if (tid)
		(void)snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (fstatat(proc_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    read_at(proc_fd, name, text, sizeof(text)) <= 0 ||
	    cw_procfs_parse_ids(text, &ids) < 0 || !has_ids_of(proc_fd, &ids, uid))
		return false;
	/*
	 * An ended process has no memory, so the kernel shows root as the owner of its status file.
	 * Its program is not hidden for that reason.
	 */
	state = find_line(text, "State:");
	return st.st_uid == uid || (state && strspn(state, " \tZX") > strspn(state, " \t"));
}

/* Reads fields 22 and 28 of proc(5): the start time of the process, and the start of its stack. */
static int read_start(int proc_fd, uint64_t *ret_ticks, uint64_t *ret_stack)
{
	char text[1024];
	const char *close;
	ssize_t n = read_at(proc_fd, "stat", text, sizeof(text));

	if (n < 0)
		return n == -ESRCH ? -ENOENT : (int)n;
	close = strrchr(text, ')');
	return close && sscanf(close + 1,
			       " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			       "%*s %*s %*s %" SCNu64 " %*s %*s %*s %*s %*s %" SCNu64,
			       ret_ticks, ret_stack) == 2
		       ? 0
		       : -EBADMSG;
}

int cw_procfs_view_open(pid_t pid, uint64_t start_ticks, uid_t uid, struct cw_procfs_view *ret)
{
	struct cw_procfs_view view = { .uid = uid };
	_cleanup_(closep) int fd = -1;
	uint64_t ticks;
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = read_start(fd, &ticks, &view.start_stack);
	if (r < 0)
		return r;
	if (ticks != start_ticks)
		return -ENOENT;
	if (!cw_procfs_may_see(fd, 0, uid))
		return -EPERM;
	view.proc_fd = steal_fd(&fd);
	*ret = view;
	return 0;
}

void cw_procfs_view_close(struct cw_procfs_view *view)
{
	closep(&view->proc_fd);
	view->proc_fd = -1;
}

bool cw_procfs_view_holds(const struct cw_procfs_view *view)
{
	uint64_t ticks, stack;

	return read_start(view->proc_fd, &ticks, &stack) == 0 && stack == view->start_stack &&
	       cw_procfs_may_see(view->proc_fd, 0, view->uid);
}

int cw_procfs_parse_syscall(const char *text, struct cw_procfs_syscall *ret)
{
	char *end;

	if (strncmp(text, "running", 7) == 0)
		return -EAGAIN;
	errno = 0;
	ret->number = strtoll(text, &end, 10);
	if (end == text || errno)
		return -EBADMSG;
	if (ret->number < 0) {
		if (sscanf(end, " %" SCNx64 " %" SCNx64, &ret->sp, &ret->pc) != 2)
			return -EBADMSG;
		return 0;
	}
	if (sscanf(end, " %*s %*s %*s %*s %*s %*s %" SCNx64 " %" SCNx64, &ret->sp, &ret->pc) != 2)
		return -EBADMSG;
	return 0;
}

static int main_thread_first(const void *a, const void *b, void *pid)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b, first = *(const pid_t *)pid;

	if (x == first || y == first)
		return (y == first) - (x == first);
	return (x > y) - (x < y);
}

int cw_procfs_threads(pid_t pid, pid_t *tids, unsigned max, unsigned *ret_total)
{
	_cleanup_(freep) pid_t *all = malloc(MAX_LISTED * sizeof(*all));
	unsigned n = 0, total = 0;
	struct dirent *d;
	char path[64];
	uint64_t tid;
	DIR *dir;

	if (!all)
		return -ENOMEM;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		if (cw_parse_u64(d->d_name, 1, INT_MAX, &tid) < 0)
			continue;
		total++;
		if (n < MAX_LISTED)
			all[n++] = (pid_t)tid;
	}
	(void)closedir(dir); /* harmless: we only read the directory */
	qsort_r(all, n, sizeof(*all), main_thread_first, &pid);
	if (n > max)
		n = max;
	memcpy(tids, all, n * sizeof(*all));
	*ret_total = total;
	return (int)n;
}
