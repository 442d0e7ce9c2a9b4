/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces kernel_events.c in a build without BPF. */
#include "daemon/kernel/kernel_events.h"

#include <errno.h>
#include <stddef.h>

int cw_kernel_events_new(struct cw_kernel_events **ret, struct cw_err *err)
{
	return cw_err_set(err, EOPNOTSUPP, "built without BPF");
}

struct cw_kernel_events *cw_kernel_events_free(struct cw_kernel_events *k)
{
	return NULL;
}

void cw_kernel_events_watch(struct cw_kernel_events *k, pid_t pid)
{
}

void cw_kernel_events_forget(struct cw_kernel_events *k, pid_t pid)
{
}

int cw_kernel_events_read(const struct cw_kernel_events *k, pid_t pid, struct cw_facts_process *ret)
{
	return -ENOENT;
}
