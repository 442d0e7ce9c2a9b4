/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/host_wait.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "model/facts.h"

/* Nine numbers at most. */
#define LINE_BYTES 256

/* Each waits on its first argument until something comes. */
static const long calls[] = { SYS_read,    SYS_readv,  SYS_recvfrom,
			      SYS_recvmsg, SYS_accept, SYS_accept4 };

int cw_host_wait_fd(const char *line)
{
	unsigned long fd;
	long call;

	/* "running", or "-1 …" where it waits for something else than in a call. */
	if (sscanf(line, "%ld %lx", &call, &fd) != 2 || fd > INT_MAX)
		return -1;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (call == calls[i])
			return (int)fd;
	return -1;
}

unsigned cw_host_wait_of(const char *link)
{
	if (strncmp(link, "socket:", 7) == 0)
		return CW_HOST_WAIT_SOCKET;
	if (strncmp(link, "/dev/pts/", 9) == 0 || strncmp(link, "/dev/tty", 8) == 0)
		return CW_HOST_WAIT_TTY;
	return CW_HOST_WAIT_UNKNOWN;
}

static int read_line(int proc_fd, char line[LINE_BYTES])
{
	_cleanup_(closep) int fd = openat(proc_fd, "syscall", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, line, LINE_BYTES - 1);

	if (n <= 0)
		return -1;
	line[n] = '\0';
	return 0;
}

unsigned cw_host_wait_look(int proc_fd)
{
	char line[LINE_BYTES], name[32], link[64];
	ssize_t n;
	int fd;

	if (read_line(proc_fd, line) < 0)
		return CW_HOST_WAIT_UNKNOWN;
	fd = cw_host_wait_fd(line);
	if (fd < 0)
		return CW_HOST_WAIT_UNKNOWN;
	(void)snprintf(name, sizeof(name), "fd/%d", fd);
	n = readlinkat(proc_fd, name, link, sizeof(link) - 1);
	if (n < 0)
		return CW_HOST_WAIT_UNKNOWN;
	link[n] = '\0';
	return cw_host_wait_of(link);
}
