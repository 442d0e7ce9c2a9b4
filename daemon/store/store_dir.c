/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "daemon/store/state_file.h"
#include "report/bundle.h"

/* Largest incident.json that we read. It lists the culprits, not all ranks. */
#define MAX_INCIDENT_BYTES (16u << 20)
/*
 * Largest file of stacks that we read. The loop waits while we read. We treat a larger file as
 * complete.
 */
#define MAX_STACKS_READ (4u << 20)

/* Calls fn for each file of the bundle. Its directory has no subdirectories. */
static int each_file(int dir_fd, const char *id, int (*fn)(int fd, const char *name, void *arg),
		     void *arg)
{
	int fd = openat(dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		(void)close(fd); /* harmless: we only read the directory */
		return r;
	}
	while (r == 0 && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = fn(fd, d->d_name, arg);
	}
	(void)closedir(dir); /* harmless: we only read the directory */
	return r;
}

static int add_size(int fd, const char *name, void *arg)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		*(uint64_t *)arg += (uint64_t)st.st_size;
	return 0;
}

static int remove_file(int fd, const char *name, void *arg)
{
	return unlinkat(fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int cw_store_dir_remove(int dir_fd, const char *id)
{
	int r = each_file(dir_fd, id, remove_file, NULL);

	if (r < 0 && r != -ENOENT)
		return r;
	return unlinkat(dir_fd, id, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

uint64_t cw_store_dir_bytes(int dir_fd, const char *id)
{
	uint64_t bytes = 0;

	/* Cannot fail: add_size() counts an unreadable file as 0. */
	(void)each_file(dir_fd, id, add_size, &bytes);
	return bytes;
}

/* Opens a regular file of the bundle. Returns its descriptor; -1 = there is no such file. */
static int open_file(int dir_fd, const char *id, const char *name, off_t *ret_bytes)
{
	_cleanup_(closep) int bundle =
		openat(dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(closep) int fd = bundle < 0 ? -1 : cw_state_file_open(bundle, name);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	*ret_bytes = st.st_size;
	return steal_fd(&fd);
}

static json_t *load(int dir_fd, const char *id, const char *name, off_t max_bytes)
{
	off_t bytes = 0;
	_cleanup_(closep) int fd = open_file(dir_fd, id, name, &bytes);

	if (fd < 0 || bytes > max_bytes)
		return NULL;
	return cw_json_parse_fd(fd, JSON_REJECT_DUPLICATES, NULL);
}

json_t *cw_store_dir_incident(int dir_fd, const char *id)
{
	return load(dir_fd, id, "incident.json", MAX_INCIDENT_BYTES);
}

bool cw_store_dir_has_stacks(int dir_fd, const char *id)
{
	off_t bytes = 0;
	_cleanup_(closep) int fd = open_file(dir_fd, id, "stacks.json", &bytes);
	json_t *stacks;
	bool has;

	if (fd < 0 || bytes > (off_t)MAX_STACKS_READ)
		return fd >= 0;
	stacks = cw_json_parse_fd(fd, JSON_REJECT_DUPLICATES, NULL);
	has = cw_store_dir_has_all_stacks(stacks);
	json_decref(stacks);
	return has;
}

bool cw_store_dir_has_all_stacks(const json_t *stacks)
{
	return json_is_object(stacks) &&
	       json_integer_value(json_object_get(stacks, "awaited")) == 0;
}

int cw_store_dir_make(const char *path)
{
	char buf[PATH_MAX];

	if ((size_t)snprintf(buf, sizeof(buf), "%s", path) >= sizeof(buf))
		return -ENAMETOOLONG;
	for (char *p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(buf, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(buf, 0750) < 0 && errno != EEXIST ? -errno : 0;
}
