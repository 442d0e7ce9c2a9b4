/* SPDX-License-Identifier: Apache-2.0 */
#include "model/facts.h"

#include <string.h>

static const char *const end_by_names[CW_END_BY__MAX] = {
	[CW_END_BY_UNKNOWN] = "",        [CW_END_BY_NOBODY] = "nobody",
	[CW_END_BY_ITSELF] = "itself",   [CW_END_BY_PROCESS] = "process",
	[CW_END_BY_OUTSIDE] = "outside", [CW_END_BY_KERNEL] = "kernel",
	[CW_END_BY_PARENT] = "parent",   [CW_END_BY_INIT] = "init",
};

static const char *const host_wait_names[CW_HOST_WAIT__MAX] = {
	[CW_HOST_WAIT_UNKNOWN] = "",        [CW_HOST_WAIT_LOCK] = "lock",
	[CW_HOST_WAIT_GIL] = "gil",         [CW_HOST_WAIT_QUEUE] = "queue",
	[CW_HOST_WAIT_SOCKET] = "socket",   [CW_HOST_WAIT_TTY] = "tty",
	[CW_HOST_WAIT_STORAGE] = "storage",
};

static unsigned find_name(const char *const *names, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return 0;
}

const char *cw_end_by_name(unsigned by)
{
	return end_by_names[by < CW_END_BY__MAX ? by : CW_END_BY_UNKNOWN];
}

enum cw_end_by cw_end_by_from_name(const char *name)
{
	return (enum cw_end_by)find_name(end_by_names, CW_END_BY__MAX, name);
}

const char *cw_host_wait_name(unsigned wait)
{
	return host_wait_names[wait < CW_HOST_WAIT__MAX ? wait : CW_HOST_WAIT_UNKNOWN];
}

enum cw_host_wait cw_host_wait_from_name(const char *name)
{
	return (enum cw_host_wait)find_name(host_wait_names, CW_HOST_WAIT__MAX, name);
}
