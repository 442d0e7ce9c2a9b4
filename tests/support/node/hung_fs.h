/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that answers nobody, as on a dead server: who looks a name up there waits until he
 * is killed. Mounted for this process and its children alone, so it goes with them.
 */
#pragma once

#include <stdbool.h>

/* On this directory. False: not to be had (not root, no FUSE). */
bool hung_fs_mount(const char *dir);
void hung_fs_unmount(const char *dir);
