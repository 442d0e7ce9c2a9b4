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

struct seen {
	ino_t *files;
	size_t n, room;
	cw_record_process_fn fn;
	void *user;
	int r; /* of fn, where it ended the search */
};

/* 1 = it was there, 0 = it is now, -errno */
static int see(struct seen *s, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	for (size_t i = 0; i < s->n; i++)
		if (s->files[i] == st.st_ino)
			return 1;
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		ino_t *grown = realloc(s->files, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->files = grown;
		s->room = room;
	}
	s->files[s->n++] = st.st_ino;
	return 0;
}

static int on_record(pid_t pid, int fd, void *user)
{
	struct seen *s = user;
	int r = see(s, fd);

	if (r == 0)
		s->r = s->fn(pid, fd, s->user);
	else
		(void)close(fd);
	if (r < 0)
		s->r = r;
	return s->r < 0;
}

int cw_record_process_each(cw_record_process_fn fn, void *user)
{
	_cleanup_(close_dir) DIR *proc = opendir("/proc");
	struct seen seen = { .fn = fn, .user = user };
	struct dirent *entry;

	if (!proc)
		return -errno;
	while (seen.r == 0 && (entry = readdir(proc))) {
		uint64_t pid;

		if (cw_parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0)
			continue;
		/* It may have ended meanwhile, or be another user's. */
		(void)cw_record_process_each_of((pid_t)pid, on_record, &seen);
	}
	free(seen.files);
	return seen.r;
}
