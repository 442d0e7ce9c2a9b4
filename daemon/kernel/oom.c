/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/oom.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"

/* Between the kill, which is counted, and the end of a process that has to give back 500 GiB. */
#define OOM_WINDOW_NS (30 * CW_NS_PER_S)

/* The line "oom_kill N"; false when there is none. */
static bool read_kills(int fd, uint64_t *ret)
{
	char buf[512];
	const char *line;
	ssize_t n;

	n = pread(fd, buf, sizeof(buf) - 1, 0);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	line = strstr(buf, "oom_kill ");
	return line && (line == buf || line[-1] == '\n') &&
	       sscanf(line, "oom_kill %" SCNu64, ret) == 1;
}

/* Whether a comma-separated list of controllers has that of memory in it. */
static bool has_memory(const char *list)
{
	for (const char *name = list; name; name = strchr(name, ',')) {
		name += *name == ',';
		if (strncmp(name, "memory", 6) == 0 && (name[6] == '\0' || name[6] == ','))
			return true;
	}
	return false;
}

/* One line of /proc/PID/cgroup: "0::/path" in version 2, "4:memory:/path" in version 1. */
static int open_counter(char *line)
{
	char path[PATH_MAX + 64], *controllers = strchr(line, ':'), *group;

	group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return -1;
	*controllers++ = *group++ = '\0';
	if (*group != '/' || strstr(group, "/.."))
		return -1; /* outside our cgroup namespace */
	if (strcmp(line, "0") == 0)
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.events", group);
	else if (has_memory(controllers))
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/memory%s/memory.oom_control",
			       group);
	else
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_events(int proc_fd)
{
	_cleanup_(closep) int fd = openat(proc_fd, "cgroup", O_RDONLY | O_CLOEXEC);
	char buf[PATH_MAX], *line = buf, *end;
	ssize_t n;
	int found = -1;

	n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	if (n <= 0)
		return -1;
	buf[n] = '\0';
	/* A last line without an end is cut off: not a path to follow. */
	for (; found < 0 && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		found = open_counter(line);
	}
	return found;
}

void cw_oom_open(struct cw_oom *oom, int proc_fd)
{
	*oom = (struct cw_oom){ .fd = open_events(proc_fd) };
	if (oom->fd >= 0 && !read_kills(oom->fd, &oom->kills))
		cw_oom_close(oom);
}

void cw_oom_close(struct cw_oom *oom)
{
	closep(&oom->fd);
	oom->fd = -1;
}

void cw_oom_look(struct cw_oom *oom, int64_t now_ns)
{
	uint64_t kills;

	if (oom->fd < 0 || !read_kills(oom->fd, &kills))
		return;
	if (kills > oom->kills)
		oom->rise_ns = now_ns;
	oom->kills = kills;
}

bool cw_oom_has_killed(struct cw_oom *oom, int64_t now_ns)
{
	cw_oom_look(oom, now_ns);
	return oom->rise_ns && now_ns - oom->rise_ns <= OOM_WINDOW_NS;
}
