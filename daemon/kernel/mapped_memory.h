/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory and which files of a process can be read without waiting for a server. A page of a
 * FUSE file comes when the program behind the file sends it, and a reader that waits for the page
 * cannot even be killed. A hostile user may run such a program, to stop the daemon's captures; a
 * server of 9p or NFS that is gone holds its readers in the same way.
 *
 * So memory is read where it is anonymous, or of a file system that the kernel serves by itself;
 * files are opened there alone. The device number in maps and the tables of mountinfo say which
 * file system it is: both ask no file system, and statfs(2) would. A device in no table is not
 * read. An overlay counts as its layers, where root's mounts or the daemon's name them. An overlay
 * that only the process's own mount namespace has may lie on anything, and is not read.
 *
 * This is as of one moment: a program that maps something else meanwhile still holds its reader. So
 * a user may hold a few readers only (CW_CHILD_MAX_ABANDONED).
 *
 * For capture children: reading maps may wait for the process's memory lock.
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
 * How many of the bytes from addr on may be read, at most len: up to the first page that may not,
 * or is not there.
 */
size_t cw_mapped_memory_readable(const struct cw_mapped_memory *m, uint64_t addr, size_t len);
/* Whether files of this device (st_dev) may be opened and read. */
bool cw_mapped_memory_is_local(const struct cw_mapped_memory *m, uint64_t dev);
/* Whether the mount that holds this path of the process's may be asked for it. */
bool cw_mapped_memory_is_local_path(const struct cw_mapped_memory *m, const char *path);

/*
 * Whether /proc/PID/cmdline and environ may be read: a process decides where its arguments and its
 * environment lie.
 */
bool cw_mapped_memory_has_local_start(pid_t pid);

/* ---- parts, for tests; pure ---- */

enum cw_mount_kind {
	CW_MOUNT_UNKNOWN = 0, /* in no list */
	CW_MOUNT_LOCAL,
	CW_MOUNT_REMOTE, /* FUSE, 9p, NFS, or an overlay on one of them */
};

/* How the device is mounted, by the text of a mountinfo file; is_trusted: root made its mounts. */
enum cw_mount_kind cw_mapped_memory_kind(const char *mountinfo, uint64_t dev, bool is_trusted);
/* The kind of the mount that holds the path, by the same text. */
enum cw_mount_kind cw_mapped_memory_kind_of_path(const char *mountinfo, const char *path);
/* Whether a page that is swapped out may lie behind a server: of the text of /proc/swaps. */
bool cw_mapped_memory_swaps_remotely(const char *swaps, const char *mountinfo);
