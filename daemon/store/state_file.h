/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the state directory, opened so that nothing that lies there can hold the loop up or lead
 * it elsewhere: an earlier daemon, an administrator or a restored backup may have left a FIFO, a
 * device, a link or a directory under one of their names.
 *
 * Does not block but for the disk.
 */
#pragma once

#include <sys/types.h>

/* To read: a regular file, no link. A descriptor, or -errno; -EINVAL: it is something else. */
int cw_state_file_open(int dir_fd, const char *name);

/*
 * To write, new and empty: what lay there is removed, never written to. A descriptor, or -errno.
 * It gets its real name by renameat().
 */
int cw_state_file_create(int dir_fd, const char *name);
