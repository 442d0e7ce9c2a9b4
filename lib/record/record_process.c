/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "record/record_layout.h"

#define MEMFD_NAME "/memfd:" CW_RECORD_NAME

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

int cw_record_process_each_of(pid_t pid, cw_record_process_fn fn, void *user)
{
	_cleanup_(close_dir) DIR *dir = NULL;
	char path[64], target[PATH_MAX];
	struct dirent *entry;
	int r = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		int fd;

		if (n < 0)
			continue;
		target[n] = '\0';
		if (strncmp(target, MEMFD_NAME, strlen(MEMFD_NAME)) != 0)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		r = fd >= 0 ? fn(pid, fd, user) : -errno;
	}
	return r;
}

static int take(pid_t pid, int fd, void *user)
{
	*(int *)user = fd;
	return 1;
}

int cw_record_process_open(pid_t pid, struct cw_err *err)
{
	int fd, r = cw_record_process_each_of(pid, take, &fd);

	if (r == 0)
		return cw_err_set(err, ENOENT, "process %d has no flight record", (int)pid);
	return r > 0 ? fd : cw_err_set(err, -r, "/proc/%d/fd: %s", (int)pid, strerror(-r));
}

struct search {
	cw_record_process_fn fn;
	void *user;
	int r; /* result of fn if it ended the search */
};

static int on_record(pid_t pid, int fd, void *user)
{
	struct search *s = user;

	s->r = s->fn(pid, fd, s->user);
	return s->r < 0;
}

int cw_record_process_each(cw_record_process_fn fn, void *user)
{
	_cleanup_(close_dir) DIR *proc = opendir("/proc");
	struct search search = { .fn = fn, .user = user };
	struct dirent *entry;

	if (!proc)
		return -errno;
	while (search.r == 0 && (entry = readdir(proc))) {
		uint64_t pid;

		if (cw_parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0)
			continue;
		/* Ignore errors: the process may have ended, or may belong to another user. */
		(void)cw_record_process_each_of((pid_t)pid, on_record, &search);
	}
	return search.r;
}

/* Returns the pid in the process's own PID namespace; 0 = not known. */
static uint64_t own_pid_of(pid_t pid)
{
	char path[64], line[512];
	uint64_t own = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last;

		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		last = strrchr(line, '\t');
		if (!last || cw_parse_u64(last + 1, 1, INT32_MAX, &own) < 0)
			own = 0;
		break;
	}
	if (f)
		(void)fclose(f);
	return own;
}

/* Returns the start time of the process in clock ticks; 0 = not known. */
static uint64_t start_ticks_of(pid_t pid)
{
	char path[64], line[1024] = "", *at, *rest = NULL;
	uint64_t ticks = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	(void)fclose(f);
	at = strrchr(line, ')'); /* a process name may contain any characters */
	if (!at)
		return 0;
	at = strtok_r(at + 1, " ", &rest); /* field 3 */
	for (int field = 3; at && field < 22; field++)
		at = strtok_r(NULL, " ", &rest);
	return at && cw_parse_u64(at, 0, UINT64_MAX, &ticks) == 0 ? ticks : 0;
}

bool cw_record_process_is(pid_t pid, int64_t own_pid, uint64_t start_ticks)
{
	return own_pid > 0 && own_pid_of(pid) == (uint64_t)own_pid &&
	       (!start_ticks || start_ticks_of(pid) == start_ticks);
}
