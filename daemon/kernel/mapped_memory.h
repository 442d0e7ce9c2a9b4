/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which memory and which files of a process we can read without waiting for a server.
 *
 * A page of a FUSE file comes from a user's program. While a reader waits for such a page, not even
 * SIGKILL ends the reader. A hostile user may run such a program to stop the daemon's captures. A
 * dead server of 9p or NFS holds its readers in the same way.
 *
 * We therefore read memory only if it is anonymous, or on a file system that the kernel itself
 * serves. We open files only on such file systems. The device number in maps and the tables of
 * mountinfo identify the file system. statfs(2) would call the file system; reading these tables
 * does not. If a device is in no table, we do not read it.
 *
 * We judge an overlay by its layers, if the mounts of root or of the daemon name them. The layers
 * of an overlay may be anywhere if it exists only in the process's own mount namespace. We do not
 * read such an overlay.
 *
 * The result holds only for a moment. The program may map another file right afterwards and then
 * hold our reader. We therefore limit the number of such readers per user (CW_CHILD_MAX_ABANDONED).
 *
 * For capture children only, because reading maps may wait for the process's memory lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cw_mapped_memory;

/* Returns 0, or -errno if we cannot read the maps or the mounts. */
int cw_mapped_memory_new(pid_t pid, struct cw_mapped_memory **ret);
/* Takes NULL; returns NULL. */
struct cw_mapped_memory *cw_mapped_memory_free(struct cw_mapped_memory *m);

/*
 * Returns the number of bytes from addr on that we may read, at most len. The range ends before the
 * first page that does not exist or that we must not read.
 */
size_t cw_mapped_memory_readable(const struct cw_mapped_memory *m, uint64_t addr, size_t len);
/* True if we may open and read files on this device (st_dev). */
bool cw_mapped_memory_is_local(const struct cw_mapped_memory *m, uint64_t dev);
/* True if we may open files of the mount that holds this path of the process. */
bool cw_mapped_memory_is_local_path(const struct cw_mapped_memory *m, const char *path);

/*
 * True if we may read /proc/PID/cmdline and environ. A process can move its arguments and its
 * environment to any memory, also to memory that comes from a server.
 */
bool cw_mapped_memory_has_local_start(pid_t pid);

/* ---- parts, for tests; they depend only on their arguments ---- */

enum cw_mount_kind {
	CW_MOUNT_UNKNOWN = 0, /* the table has no such mount */
	CW_MOUNT_LOCAL,
	CW_MOUNT_REMOTE, /* FUSE, 9p, NFS, or an overlay on one of them */
};

/*
 * Finds the mount of the device in the text of a mountinfo file, and returns its kind. is_trusted:
 * root made the mounts of this file.
 */
enum cw_mount_kind cw_mapped_memory_kind(const char *mountinfo, uint64_t dev, bool is_trusted);
/* Finds the mount that holds the path in the text of a mountinfo file, and returns its kind. */
enum cw_mount_kind cw_mapped_memory_kind_of_path(const char *mountinfo, const char *path);
/* True if swapped-out pages may be on a server. swaps: the text of /proc/swaps. */
bool cw_mapped_memory_swaps_remotely(const char *swaps, const char *mountinfo);
