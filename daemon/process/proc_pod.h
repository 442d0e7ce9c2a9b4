/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the pod of a process, and its pid inside the pod. Both come from /proc: the pod from the
 * path of the process's cgroup. A user can create cgroups with any path, so check the result as
 * record/pod.h explains. Does not block; any thread.
 */
#pragma once

#include <stdint.h>

#include "record/pod.h"

struct cw_proc_pod {
	struct cw_pod ids; /* empty strings = no pod, or unknown */
	int32_t own_pid;   /* pid in the innermost pid namespace; 0 = unknown, or the same pid */
};

/*
 * Reads the pod of a process. proc_fd: a descriptor of /proc/PID. Fields that we cannot read stay
 * empty.
 */
void cw_proc_pod_read(int proc_fd, struct cw_proc_pod *ret);

/*
 * Returns the last number of the line NSpid in the text of /proc/PID/status. 0 = the line has only
 * one number. Depends only on the text.
 */
int32_t cw_proc_pod_own_pid(const char *status);
