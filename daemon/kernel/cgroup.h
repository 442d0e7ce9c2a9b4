/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files in the cgroups of a process. /proc/PID/cgroup has the paths of its groups, relative
 * to our cgroup namespace. We cannot open a group outside of this namespace. If both cgroup
 * versions are mounted side by side, we look for version 2 below "unified", too.
 *
 * Loop thread only; reads small files of procfs and cgroupfs, which do not block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens a file in a cgroup of the process whose /proc directory is proc_fd. controller: the
 * controller of version 1; NULL = the group of version 2. Returns the descriptor (CLOEXEC), or -1
 * if there is no such file.
 */
int cw_cgroup_open(int proc_fd, const char *controller, const char *file);

/*
 * True if one of the process's cgroups is frozen ("docker pause", a checkpoint, a suspended
 * container). The process does not run until the group is thawed. Returns false if we cannot see
 * the group.
 */
bool cw_cgroup_is_frozen(int proc_fd);

/*
 * Like cw_cgroup_is_frozen(). Also writes the path of the frozen group, such as "/docker/4f1c",
 * into ret_group: printable ASCII, cut to len bytes; "" = the path is unknown.
 */
bool cw_cgroup_frozen(int proc_fd, char *ret_group, size_t len);
