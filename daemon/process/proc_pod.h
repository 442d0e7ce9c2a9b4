/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pod a process is in, by its control group, and what its pid is there: what /proc of it
 * says. The path is whatever its user may have made: see record/pod.h. Does not block; any thread.
 */
#pragma once

#include <stdint.h>

#include "record/pod.h"

struct cw_proc_pod {
	struct cw_pod ids; /* empty: in none that can be told */
	int32_t own_pid;   /* in the innermost pid namespace; 0 = it is the same, or not known */
};

/* proc_fd: of /proc/PID. What cannot be read is not known. */
void cw_proc_pod_read(int proc_fd, struct cw_proc_pod *ret);

/* Its pure part: the last number of the line NSpid of /proc/PID/status, 0 for what is alike. */
int32_t cw_proc_pod_own_pid(const char *status);
