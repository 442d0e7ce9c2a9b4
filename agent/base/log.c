/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/file_size.h"

/*
 * Read once, by a thread of the application: the helper thread must not look at an environment that
 * may be changing under it, and always comes second, because the agent's start calls
 * cw_log_start().
 */
static const char *log_path(void)
{
	static char path[256];
	static int state; /* 0 = not read, 1 = being read, 2 = read */
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
	/*
	 * Opened each time: a descriptor kept would be closed or reused by the application. A FIFO
	 * that nobody reads, or that is full, and a terminal that was stopped lose the line.
	 */
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	if (fd >= 0) {
		(void)cw_write(fd, line, (size_t)n); /* diagnostics only */
		(void)close(fd);
	}
out:
	errno = saved_errno;
}
