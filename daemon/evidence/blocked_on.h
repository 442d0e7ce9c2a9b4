/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the file that a thread in uninterruptible sleep waits for, and the device or server of that
 * file. We read /proc alone, and never ask the file system itself, because it does not answer.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

/*
 * Returns {"fd":5,"path":"/ckpt/x","device":"8:1","fs":"ext4","source":"/dev/sda1"}, a new
 * reference. NULL if the thread's system call uses no open file, or if we cannot read it. Reads
 * /proc, so call it in a child only.
 */
json_t *cw_blocked_on(pid_t pid, pid_t tid);

/*
 * Finds the entry with this mount id in a mountinfo text, and copies its device, fs and source into
 * doc. 0 or -ENOENT. Pure.
 */
int cw_blocked_on_mount(const char *mountinfo, int mount_id, json_t *doc);
