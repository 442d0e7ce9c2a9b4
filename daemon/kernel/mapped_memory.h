/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which memory and which files of a process we can read without waiting for a server.
 *
 * The program behind a FUSE file sends its pages, and even SIGKILL does not end a reader that waits
 * for one. A hostile user may run such a program to stop the daemon's captures. A dead server of 9p
 * or NFS holds its readers in the same way.
 *
 * So we read memory only if it is anonymous, or on a file system that the kernel itself serves. We
 * open files only on such file systems. The device number in maps and the tables of mountinfo
 * identify the file system. These ask no file system, as statfs(2) would. We do not read a device
 * that is in no table.
 *
 * We judge an overlay by its layers, if root's mounts or the daemon's name them. An overlay that
 * exists only in the process's own mount namespace may lie on anything, and we do not read it.
 *
 * The answer holds for one moment. A program that maps another file meanwhile still holds its
 * reader, so a user may hold only a few readers (CW_CHILD_MAX_ABANDONED).
 *
 * For capture children only: reading maps may wait for the process's memory lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cw_mapped_memory;

/* 0, -errno where maps or mounts cannot be read. */
int cw_mapped_memory_new(pid_t pid, struct cw_mapped_memory **ret);
/* Takes NULL; returns NULL. */
struct cw_mapped_memory *cw_mapped_memory_free(struct cw_mapped_memory *m);

/*
 * How many bytes from addr on we may read, at most len: up to the first page that we may not read
 * or that does not exist.
 */
size_t cw_mapped_memory_readable(const struct cw_mapped_memory *m, uint64_t addr, size_t len);
/* True if we may open and read files of this device (st_dev). */
bool cw_mapped_memory_is_local(const struct cw_mapped_memory *m, uint64_t dev);
/* True if we may ask the mount that holds this path of the process. */
bool cw_mapped_memory_is_local_path(const struct cw_mapped_memory *m, const char *path);

/*
 * True if we may read /proc/PID/cmdline and environ: a process decides where its arguments and its
 * environment lie.
 */
bool cw_mapped_memory_has_local_start(pid_t pid);

/* ---- parts, for tests; pure ---- */

enum cw_mount_kind {
	CW_MOUNT_UNKNOWN = 0, /* not in the table */
	CW_MOUNT_LOCAL,
	CW_MOUNT_REMOTE, /* FUSE, 9p, NFS, or an overlay on one of them */
};

/*
 * The kind of the device's mount, from the text of a mountinfo file; is_trusted: root made
 * its mounts.
 */
enum cw_mount_kind cw_mapped_memory_kind(const char *mountinfo, uint64_t dev, bool is_trusted);
/* The kind of the mount that holds the path, by the same text. */
enum cw_mount_kind cw_mapped_memory_kind_of_path(const char *mountinfo, const char *path);
/* True if a swapped-out page may lie behind a server, from the text of /proc/swaps. */
bool cw_mapped_memory_swaps_remotely(const char *swaps, const char *mountinfo);
