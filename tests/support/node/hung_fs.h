/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that never answers, as on a dead server. A process that looks up a name there waits
 * until it is killed. We mount it only for this process and its children, so it disappears with
 * them.
 */
#pragma once

#include <stdbool.h>

/*
 * Mounts it on this directory. Returns false if the machine cannot provide it (not root, no FUSE).
 */
bool hung_fs_mount(const char *dir);
void hung_fs_unmount(const char *dir);
