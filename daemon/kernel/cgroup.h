/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the control groups that a process is in. /proc/PID/cgroup names its groups, seen from
 * this process's cgroup namespace: what lies outside of that is not found. Where both versions are
 * mounted side by side, version 2 is looked for below "unified", too.
 *
 * Loop thread only; reads small files of procfs and cgroupfs, which do not block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens a file of the group of the process whose /proc directory this is. controller: of version 1;
 * NULL = the group of version 2. Returns the descriptor (CLOEXEC), -1 = there is none.
 */
int cw_cgroup_open(int proc_fd, const char *controller, const char *file);

/*
 * The process stands still because somebody froze one of its groups ("docker pause", a checkpoint,
 * a suspended container), and goes on when that one is thawed. False where nothing is to be seen.
 */
bool cw_cgroup_is_frozen(int proc_fd);

/* "frozen with its control group /docker/4f1c"; "" = it is not. Printable ASCII. */
void cw_cgroup_say_frozen(int proc_fd, char *buf, size_t len);
