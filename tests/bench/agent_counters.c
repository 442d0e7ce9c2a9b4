/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/agent_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_counter(uint64_t what)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = what,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Return: false when nothing was counted. */
static bool counted_batch(int fd, call_fn call, bool with_agent, double *ret)
{
	uint64_t n = 0;

	(void)ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	(void)ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (unsigned i = 0; i < BATCH_CALLS; i++)
		call(i, with_agent);
	(void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		return false;
	*ret = (double)n / BATCH_CALLS;
	return true;
}

static void count(uint64_t what, call_fn call, struct counted *ret)
{
	static double with[BATCHES], without[BATCHES];
	int fd = open_counter(what);
	bool ok = fd >= 0;

	*ret = (struct counted){ .is_there = false };
	if (!ok)
		(void)snprintf(ret->why, sizeof(ret->why), "perf_event_open: %s", strerror(errno));
	for (unsigned i = 0; i < extent.batches && ok; i++)
		ok = counted_batch(fd, call, false, &without[i]) &&
		     counted_batch(fd, call, true, &with[i]);
	if (fd < 0)
		return;
	(void)close(fd);
	ret->is_there = ok;
	ret->median = summary(with, without, extent.batches, 0, 1).median;
	if (!ok)
		(void)snprintf(ret->why, sizeof(ret->why), "the counter cannot be read");
}

void count_instructions(call_fn call, struct counted *ret)
{
	count(PERF_COUNT_HW_INSTRUCTIONS, call, ret);
}

void count_cache_misses(call_fn call, struct counted *ret)
{
	count(PERF_COUNT_HW_CACHE_MISSES, call, ret);
}
