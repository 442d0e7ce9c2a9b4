/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files of the state directory. Another program, an administrator or a backup may have left a
 * FIFO, a device, a link or a directory under the name of such a file. These functions make sure
 * that it cannot block the loop, or make us read or write another file.
 *
 * Blocks only for the disk.
 */
#pragma once

#include <sys/types.h>

/*
 * Opens a regular file for reading, without following a link. Returns a descriptor, or -errno.
 * -EINVAL: it is not a regular file.
 */
int cw_state_file_open(int dir_fd, const char *name);

/*
 * Creates an empty file for writing. If the name exists, removes it and never writes to the old
 * file. Returns a descriptor, or -errno. The caller then gives the file its final name with
 * renameat().
 */
int cw_state_file_create(int dir_fd, const char *name);
