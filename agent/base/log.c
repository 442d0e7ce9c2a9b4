/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/file_size.h"

/*
 * Returns the path from COLLWATCH_LOG. We read the variable once, in a thread of the application.
 * The helper thread must not read the environment, because the application may be changing it at
 * that time. cw_log_start() has already read the variable when the helper thread starts.
 */
static const char *log_path(void)
{
	static char path[256];
	static int state; /* 0 = not read yet, 1 = a thread is reading it, 2 = read */
	int expected = 0;
	const char *value;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2)
		return path;
	if (!__atomic_compare_exchange_n(&state, &expected, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_ACQUIRE))
		return expected == 2 ? path : "";
	value = getenv("COLLWATCH_LOG");
	if (value && strlen(value) < sizeof(path))
		strcpy(path, value);
	__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
	return path;
}

void cw_log_start(void)
{
	(void)log_path();
}

/*
 * Returns whether the log is a regular file of this user and no link. Other users may write to the
 * log's directory, as in /tmp. They could leave a link there to one of this user's files, or a file
 * that they own. We make the system call directly: fstat@GLIBC_2.33 would be the newest symbol that
 * we need.
 */
static bool is_plain_and_own(int fd)
{
	struct stat st;

	return syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       st.st_uid == geteuid();
}

/*
 * Opens the log for one line. A descriptor that we kept might be closed or reused by the
 * application. O_NONBLOCK keeps a FIFO without a reader or a stopped terminal from blocking us.
 * Returns a descriptor; -1 if we cannot log.
 */
static int open_log(const char *path)
{
	/*
	 * /dev/stderr is itself a link, so we must follow it. The program opened its target, so we
	 * need no check.
	 */
	bool is_stderr = !strcmp(path, "/dev/stderr");
	int fd = open(path,
		      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
			      (is_stderr ? 0 : O_NOFOLLOW),
		      0644);

	if (fd < 0 || is_stderr || is_plain_and_own(fd))
		return fd;
	(void)close(fd);
	return -1;
}

void cw_log(const char *fmt, ...)
{
	int saved_errno = errno;
	const char *path = log_path();
	char line[512];
	va_list ap;
	int fd, n, m;

	if (!path[0])
		return;
	n = snprintf(line, sizeof(line), "collwatch[%ld]: ", (long)syscall(SYS_getpid));
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (m < 0)
		goto out;
	n += m;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	fd = open_log(path);
	if (fd >= 0) {
		/* The loss of a diagnostic line does no harm. */
		(void)cw_write(fd, line, (size_t)n);
		(void)close(fd);
	}
out:
	errno = saved_errno;
}
