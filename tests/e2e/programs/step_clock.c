/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a daemon, it lets a test set the wall clock of that daemon alone: file
 * CW_STEP_CLOCK holds the seconds to add, and we read it each time. Preloaded into a command with
 * CW_CLOCK_STRIDE, each look at the monotonic clock finds it so many seconds later than the one
 * before. So a quick action seems to take long.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long step_s(void)
{
	const char *path = getenv("CW_STEP_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32] = "";

	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		(void)close(fd);
	}
	return strtol(text, NULL, 10);
}

/* One thread looks. */
static void stride(struct timespec *t)
{
	const char *text = getenv("CW_CLOCK_STRIDE");
	static long passed_s;

	if (!text)
		return;
	passed_s += strtol(text, NULL, 10);
	t->tv_sec += passed_s;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, clock, t);

	if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		t->tv_sec += step_s();
	if (r == 0 && clock == CLOCK_MONOTONIC)
		stride(t);
	return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) < 0)
		return -1;
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) < 0)
		return (time_t)-1;
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
