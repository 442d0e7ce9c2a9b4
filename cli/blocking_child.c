/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/blocking_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"

/* Time that we wait for a killed child. One that hangs in the kernel survives SIGKILL. */
#define KILL_WAIT_MS 500

static bool wait_for(int fd, int64_t until_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t left_ns = until_ns - cw_clock_now_ns(&cw_clock_system);

	return left_ns > 0 && poll(&p, 1, (int)(left_ns / CW_NS_PER_MS) + 1) == 1;
}

/* Reads until the output ends. Drops what the buffer does not hold. */
static bool read_output(int fd, int64_t until_ns, char *buf, size_t size, size_t *len)
{
	char rest[256];
	ssize_t n;

	for (;;) {
		if (!wait_for(fd, until_ns))
			return false;
		n = *len < size ? read(fd, buf + *len, size - *len) : read(fd, rest, sizeof(rest));
		if (n <= 0)
			return n == 0;
		if (*len < size)
			*len += (size_t)n;
	}
}

int cw_blocking_child_run(const struct cw_blocking_child *child, char *buf, size_t size,
			  size_t *ret_len, int *ret_status)
{
	int64_t until_ns = cw_clock_now_ns(&cw_clock_system) + child->timeout_ns;
	_cleanup_(closep) int in_fd = -1, pidfd = -1;
	bool has_ended;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	in_fd = fds[0];
	pid = fork();
	if (pid == 0)
		_exit(child->main(fds[1], child->arg));
	(void)close(fds[1]);
	if (pid < 0)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	*ret_len = 0;
	*ret_status = 0;
	has_ended = read_output(in_fd, until_ns, buf, size, ret_len) &&
		    (pidfd < 0 || wait_for(pidfd, until_ns));
	if (!has_ended) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };

		(void)kill(pid, SIGKILL);
		(void)poll(&p, 1, KILL_WAIT_MS);
	}
	/* We leave a child that hangs in the kernel to init. */
	if (waitpid(pid, ret_status, has_ended ? 0 : WNOHANG) < 0)
		return -errno;
	return has_ended ? 0 : -ETIMEDOUT;
}
