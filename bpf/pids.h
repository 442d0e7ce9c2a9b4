/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Pids and tids as the daemon knows them, in its own pid namespace. */
#pragma once

#include "bpf/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define MAX_PID_LEVELS 32 /* MAX_PID_NS_LEVEL of the kernel */

/* Inode of the daemon's pid namespace; 0 = the daemon is in the initial one. */
const volatile uint32_t own_pid_ns = 0;

static int upid_number(struct pid *pid, unsigned int level, struct upid *ret)
{
	const char *at = (const char *)pid + bpf_core_field_offset(struct pid, numbers);

	return (int)bpf_probe_read_kernel(ret, sizeof(*ret), at + level * sizeof(*ret));
}

/* Returns the number of pid in the daemon's namespace; 0 = pid has no number there. */
static uint32_t own_number(struct pid *pid)
{
	struct upid upid;

	if (!pid)
		return 0;
	for (unsigned int i = 1; i <= MAX_PID_LEVELS; i++) {
		if (i > BPF_CORE_READ(pid, level) || upid_number(pid, i, &upid) < 0)
			break;
		if (BPF_CORE_READ(upid.ns, ns.inum) == own_pid_ns)
			return (uint32_t)upid.nr;
	}
	return 0;
}

/* Returns the process's pid in the daemon's namespace; 0 = the process has none there. */
static uint32_t pid_of(struct task_struct *task)
{
	if (!own_pid_ns)
		return (uint32_t)BPF_CORE_READ(task, tgid);
	return own_number(BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]));
}
