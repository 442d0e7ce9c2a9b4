/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"

/* A directory with more entries is sorted only so far; no job has that many threads. */
#define MAX_LISTED 65536u

static ssize_t read_path(const char *path, char *buf, size_t len)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;

	if (fd < 0)
		return -errno;
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

ssize_t cw_procfs_read(pid_t pid, const char *file, char *buf, size_t len)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return read_path(path, buf, len);
}

ssize_t cw_procfs_read_task(pid_t pid, pid_t tid, const char *file, char *buf, size_t len)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	return read_path(path, buf, len);
}

int cw_procfs_parse_stat(const char *text, struct cw_procfs_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	size_t len;

	/* The name may hold anything, blanks and parentheses too: the last ')' ends it. */
	if (!open || !close || close < open)
		return -EBADMSG;
	/* Fields 3, 14, 15 and 22 of proc(5). */
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

bool cw_procfs_parse_is_only(const char *text, uid_t uid)
{
	/* The first line holds the name, in which newlines are escaped: no forged "Uid:" line. */
	const char *line = strstr(text, "\nUid:");
	unsigned id[4];

	return line && sscanf(line, " Uid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4 &&
	       id[0] == uid && id[1] == uid && id[2] == uid && id[3] == uid;
}

bool cw_procfs_is_only(pid_t pid, pid_t tid, uid_t uid)
{
	char text[4096];

	return cw_procfs_read_task(pid, tid, "status", text, sizeof(text)) > 0 &&
	       cw_procfs_parse_is_only(text, uid);
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
	(void)closedir(dir); /* only read */
	qsort_r(all, n, sizeof(*all), main_thread_first, &pid);
	if (n > max)
		n = max;
	memcpy(tids, all, n * sizeof(*all));
	*ret_total = total;
	return (int)n;
}
