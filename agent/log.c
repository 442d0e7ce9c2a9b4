/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void cw_log(const char *fmt, ...)
{
	int saved_errno = errno;
	const char *path = getenv("COLLWATCH_LOG");
	char line[512];
	va_list ap;
	int fd, n, m;

	if (!path || !path[0])
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
	/* Opened each time: a descriptor kept would be closed or reused by the application. */
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd >= 0) {
		(void)!write(fd, line, (size_t)n); /* diagnostics only */
		(void)close(fd);
	}
out:
	errno = saved_errno;
}
