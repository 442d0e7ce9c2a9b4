/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether the OOM killer killed a rank that died of SIGKILL. The kernel counts such kills
 * per cgroup (memory.events of version 2, memory.oom_control of version 1). We watch the count of
 * the rank's group. If a rank dies of SIGKILL within OOM_WINDOW_NS (oom.c) of a rise, we blame the
 * OOM killer. If two ranks of one group are killed for different reasons in this time, we cannot
 * tell these reasons apart.
 *
 * If there is no memory controller, or we cannot see it, we claim nothing.
 *
 * Loop thread only; reads one small file of cgroupfs, which does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_oom {
	int fd; /* the file with the count of kills; -1 = we cannot see it */
	uint64_t kills;
	int64_t rise_ns; /* time at which we last saw the count rise; 0 = never */
};

/*
 * Opens the file with the count for the process whose /proc directory is proc_fd. If this fails, fd
 * is -1.
 */
void cw_oom_open(struct cw_oom *oom, int proc_fd);
void cw_oom_close(struct cw_oom *oom);

/* Reads the count. Call this once a second, and at the end of the process. */
void cw_oom_look(struct cw_oom *oom, int64_t now_ns);
/*
 * Reads the count. Returns true if the OOM killer killed a process that has just died of SIGKILL.
 */
bool cw_oom_has_killed(struct cw_oom *oom, int64_t now_ns);
