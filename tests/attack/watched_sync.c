/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: notes each fsync() in the file $CW_SYNC_LOG, one line "begin|done NANOSECONDS PATH" by
 * the monotonic clock. Where $CW_SYNC_GATE names a file, an fsync() of a path under a directory
 * "incidents" does not end before that file exists: a disk that has stopped.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void note(const char *what, const char *path)
{
	const char *log = getenv("CW_SYNC_LOG");
	int fd = log ? open(log, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (fd < 0)
		return;
	dprintf(fd, "%s %" PRId64 " %s\n", what, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
		path);
	(void)close(fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
	const char *gate = getenv("CW_SYNC_GATE");
	char link[64], path[PATH_MAX] = "";
	int r;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		path[0] = '\0';
	note("begin", path);
	while (gate && strstr(path, "/incidents") && access(gate, F_OK) < 0)
		(void)poll(NULL, 0, 10);
	r = real(fd);
	note("done", path);
	return r;
}
