/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/proc_pod.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"

/*
 * Room for /proc/PID/cgroup. In version 1 it has about 14 lines, and each is as long as a pod's
 * path.
 */
#define GROUPS_BYTES 8192
/*
 * Room for the start of /proc/PID/status. NSpid is in the first half KiB, after the name and the
 * supplementary groups.
 */
#define STATUS_BYTES 8192

static bool read_text(int proc_fd, const char *name, char *buf, size_t size)
{
	_cleanup_(closep) int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/*
 * Finds the last number in a line such as "NSpid:\t812\t17". The first number is the pid in our
 * namespace. Each further number is the pid in the next inner namespace.
 */
int32_t cw_proc_pod_own_pid(const char *status)
{
	const char *line = strstr(status, "\nNSpid:"), *end, *last;
	char number[16];
	uint64_t pid;

	end = line ? strchr(line + 1, '\n') : NULL;
	if (!end)
		return 0;
	for (last = end; last[-1] >= '0' && last[-1] <= '9';)
		last--;
	if ((size_t)(end - last) >= sizeof(number) ||
	    !memchr(line, '\t', (size_t)(last - 1 - line)))
		return 0; /* the line has only one number */
	(void)snprintf(number, sizeof(number), "%.*s", (int)(end - last), last);
	return cw_parse_u64(number, 1, INT32_MAX, &pid) < 0 ? 0 : (int32_t)pid;
}

void cw_proc_pod_read(int proc_fd, struct cw_proc_pod *ret)
{
	char text[GROUPS_BYTES > STATUS_BYTES ? GROUPS_BYTES : STATUS_BYTES];

	*ret = (struct cw_proc_pod){ 0 };
	if (read_text(proc_fd, "cgroup", text, sizeof(text)))
		(void)cw_pod_of_groups(text, &ret->ids);
	if (read_text(proc_fd, "status", text, sizeof(text)))
		ret->own_pid = cw_proc_pod_own_pid(text);
}
