/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the file that a thread in uninterruptible sleep waits for, and the device or server of this
 * file. We read only /proc. We never call the file system itself, because it does not answer.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

/*
 * Returns {"fd":5,"path":"/ckpt/x","device":"8:1","fs":"ext4","source":"/dev/sda1"}, a new
 * reference. NULL = the thread's system call uses no open file, or we cannot read it. Reading /proc
 * may hang, so call this only in a child.
 */
json_t *cw_blocked_on(pid_t pid, pid_t tid);

/*
 * Finds the line with this mount id in the text of a mountinfo file. Copies its device, fs and
 * source into doc. Returns 0 or -ENOENT. Depends only on its arguments.
 */
int cw_blocked_on_mount(const char *mountinfo, int mount_id, json_t *doc);
