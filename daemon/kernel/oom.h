/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was a rank that died of SIGKILL killed by the OOM killer? The kernel counts such kills for each
 * control group (memory.events of version 2, memory.oom_control of version 1). The count of the
 * rank's group is watched: a SIGKILL within OOM_WINDOW of a rise is taken for one. Two ranks of one
 * group killed for different reasons in that time cannot be told apart.
 *
 * Where there is no memory controller, or it is not visible, nothing is claimed.
 *
 * Loop thread only; reads one small file of cgroupfs, which does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_oom {
	int fd; /* the file with the count; -1 = not visible */
	uint64_t kills;
	int64_t rise_ns; /* last time the count was seen higher; 0 = never */
};

/* Opens the group of the process whose /proc directory this is. Never fails: see fd. */
void cw_oom_open(struct cw_oom *oom, int proc_fd);
void cw_oom_close(struct cw_oom *oom);

/* Call once a second and at the end of the process. */
void cw_oom_look(struct cw_oom *oom, int64_t now_ns);
/* For a process that has just died of SIGKILL; looks first. */
bool cw_oom_has_killed(struct cw_oom *oom, int64_t now_ns);
