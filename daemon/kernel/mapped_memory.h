/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which memory and which files of a process we can read without waiting for a server.
 *
 * The program behind a FUSE file sends its pages. If a reader waits for such a page, not even
 * SIGKILL ends it. A hostile user may run such a program to stop the daemon's captures. A dead
 * server of 9p or NFS holds its readers in the same way.
 *
 * So we read memory only if it is anonymous, or on a file system that the kernel itself serves. We
 * open files only on such file systems. The device number in maps and the tables of mountinfo
 * identify the file system. Unlike statfs(2), they ask no file system. We do not read a device that
 * is in no table.
 *
 * We judge an overlay by its layers, if the mounts of root or of the daemon name them. An overlay
 * that exists only in the process's own mount namespace may lie on anything, so we do not read it.
 *
 * The answer holds for one moment. A program that maps another file meanwhile can still hold its
 * reader, so a user may hold only a few readers (CW_CHILD_MAX_ABANDONED).
 *
 * For capture children only, because reading maps may wait for the process's memory lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cw_mapped_memory;

/* 0, or -errno if we cannot read the maps or the mounts. */
int cw_mapped_memory_new(pid_t pid, struct cw_mapped_memory **ret);
/* Takes NULL; returns NULL. */
struct cw_mapped_memory *cw_mapped_memory_free(struct cw_mapped_memory *m);

/*
 * Returns how many bytes from addr on we may read, at most len. The range ends at the first page
 * that does not exist or that we may not read.
 */
size_t cw_mapped_memory_readable(const struct cw_mapped_memory *m, uint64_t addr, size_t len);
/* True if we may open and read files of this device (st_dev). */
bool cw_mapped_memory_is_local(const struct cw_mapped_memory *m, uint64_t dev);
/* True if we may send requests to the mount that holds this path of the process. */
bool cw_mapped_memory_is_local_path(const struct cw_mapped_memory *m, const char *path);

/*
 * True if we may read /proc/PID/cmdline and environ. A process decides where its arguments and its
 * environment lie, so they may be on a server.
 */
bool cw_mapped_memory_has_local_start(pid_t pid);

/* ---- parts, for tests; pure ---- */

enum cw_mount_kind {
	CW_MOUNT_UNKNOWN = 0, /* not in the table */
	CW_MOUNT_LOCAL,
	CW_MOUNT_REMOTE, /* FUSE, 9p, NFS, or an overlay on one of them */
};

/*
 * Returns the kind of the device's mount, from the text of a mountinfo file. is_trusted: root made
 * the mounts of this file.
 */
enum cw_mount_kind cw_mapped_memory_kind(const char *mountinfo, uint64_t dev, bool is_trusted);
/* Returns the kind of the mount that holds the path, from the text of a mountinfo file. */
enum cw_mount_kind cw_mapped_memory_kind_of_path(const char *mountinfo, const char *path);
/* True if a swapped-out page may lie behind a server. `swaps` is the text of /proc/swaps. */
bool cw_mapped_memory_swaps_remotely(const char *swaps, const char *mountinfo);
