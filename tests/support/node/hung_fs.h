/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that never answers, as on a dead server: a process that looks a name up there waits
 * until it is killed. We mount it for this process and its children alone, so it goes with them.
 */
#pragma once

#include <stdbool.h>

/* Mounts on this directory. False: the machine cannot provide it (not root, no FUSE). */
bool hung_fs_mount(const char *dir);
void hung_fs_unmount(const char *dir);
