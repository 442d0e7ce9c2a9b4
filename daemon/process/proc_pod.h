/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod of a process, from its cgroup, and its pid inside the pod, both from /proc. A user can
 * create cgroups, so the path may be anything: see record/pod.h. Does not block; any thread.
 */
#pragma once

#include <stdint.h>

#include "record/pod.h"

struct cw_proc_pod {
	struct cw_pod ids; /* empty = no pod, or unknown */
	int32_t own_pid;   /* pid in the innermost pid namespace; 0 = the same pid, or unknown */
};

/*
 * Reads the pod of a process. proc_fd is a descriptor of /proc/PID. Leaves empty what it cannot
 * read.
 */
void cw_proc_pod_read(int proc_fd, struct cw_proc_pod *ret);

/*
 * Returns the last number of the line NSpid of /proc/PID/status; 0 = there is only one number.
 * Pure.
 */
int32_t cw_proc_pod_own_pid(const char *status);
