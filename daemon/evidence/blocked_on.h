/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread in uninterruptible sleep waits for: the file its system call is about, and the
 * device or server that file is on. Read from /proc alone: the file system itself, which does not
 * answer, is not asked.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

/*
 * {"fd":5,"path":"/ckpt/x","device":"8:1","fs":"ext4","source":"/dev/sda1"}, or NULL when its call
 * is about no open file, or that cannot be read. New reference. Reads /proc: a child only.
 */
json_t *cw_blocked_on(pid_t pid, pid_t tid);

/*
 * The entry of a mountinfo text with this mount id, into device, fs and source of doc. 0, -ENOENT.
 * Pure.
 */
int cw_blocked_on_mount(const char *mountinfo, int mount_id, json_t *doc);
