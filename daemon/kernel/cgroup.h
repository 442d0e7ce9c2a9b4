/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files of the cgroups of a process. /proc/PID/cgroup names its groups, as seen from our
 * cgroup namespace; we cannot find a group outside of it. If both cgroup versions are mounted side
 * by side, we also look for version 2 below "unified".
 *
 * Loop thread only; reads small files of procfs and cgroupfs, which do not block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens a file in the cgroup of the process whose /proc directory is proc_fd. controller names the
 * controller of version 1; NULL = the group of version 2. Returns the descriptor (CLOEXEC), or -1
 * if there is no such file.
 */
int cw_cgroup_open(int proc_fd, const char *controller, const char *file);

/*
 * True if one of the process's cgroups is frozen ("docker pause", a checkpoint, a suspended
 * container). The process stands still until that group is thawed. If we cannot see the group, we
 * return false.
 */
bool cw_cgroup_is_frozen(int proc_fd);

/*
 * Like cw_cgroup_is_frozen(), and writes the path of the frozen group ("/docker/4f1c"), cut to len
 * bytes. Printable ASCII; "" = not known.
 */
bool cw_cgroup_frozen(int proc_fd, char *ret_group, size_t len);
