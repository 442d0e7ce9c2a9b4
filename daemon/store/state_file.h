/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files of the state directory, so that no existing entry can block the loop or redirect it.
 * An earlier daemon, an administrator or a backup may have left a FIFO, a device, a link or a
 * directory under such a name.
 *
 * Blocks only for the disk.
 */
#pragma once

#include <sys/types.h>

/*
 * Opens a regular file for reading, and follows no link. Returns a descriptor, or -errno; -EINVAL:
 * not a regular file.
 */
int cw_state_file_open(int dir_fd, const char *name);

/*
 * Creates a new, empty file for writing. Removes an existing entry and never writes to it. Returns
 * a descriptor, or -errno. The caller gives the file its real name with renameat().
 */
int cw_state_file_create(int dir_fd, const char *name);
