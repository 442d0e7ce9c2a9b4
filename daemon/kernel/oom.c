/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/oom.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "daemon/kernel/cgroup.h"

/*
 * Longest time between the rise of the count and the end of the killed process. A process with
 * 500 GiB takes that long to free them.
 */
#define OOM_WINDOW_NS (30 * CW_NS_PER_S)

/* Reads the number from the line "oom_kill N". Returns false if there is no such line. */
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

static int open_events(int proc_fd)
{
	int fd = cw_cgroup_open(proc_fd, NULL, "memory.events");

	return fd >= 0 ? fd : cw_cgroup_open(proc_fd, "memory", "memory.oom_control");
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
