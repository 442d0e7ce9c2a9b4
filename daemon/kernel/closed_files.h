/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of /proc that the kernel shows only to a process that may trace the other one: io, syscall,
 * links of descriptors, and some fields of stat. The loop has dropped this right. A child of the
 * fork server keeps it (daemon/rights.h), and reads these files for the loop. The child parses
 * nothing, and it opens only the files of this list. Before Linux 5.19 it also makes the calls of
 * BPF maps that need CAP_BPF.
 *
 * The loop waits for the answer, a few microseconds as a rule. A file of a process in execve() can
 * hang the child. The loop then waits CW_CLOSED_WAIT_MS at most. Until the late answer arrives, all
 * further reads fail at once with -EAGAIN.
 *
 * Without cw_closed_files_use(), the calling process reads the files itself. Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CW_CLOSED_WAIT_MS 50
/* No file is longer; stat has about 350 bytes. */
#define CW_CLOSED_MAX_BYTES 1024u

enum cw_closed_file {
	CW_CLOSED_STAT,
	CW_CLOSED_IO,
	CW_CLOSED_SYSCALL,
	CW_CLOSED_THREAD_SYSCALL, /* number: a tid */
	CW_CLOSED_CWD,            /* target of the link of the working directory */
	CW_CLOSED_LINK,           /* target of a descriptor's link; number: the descriptor */
};

/*
 * Reads a file below proc_fd, a descriptor of /proc/PID, into buf, and appends a NUL. Returns the
 * length or -errno. -EAGAIN: no child can read it now.
 */
ssize_t cw_closed_files_read(int proc_fd, enum cw_closed_file file, int number, char *buf,
			     size_t len);

/*
 * Calls bpf(2) for one entry of a map. update and lookup use `value` of `len` bytes, up to
 * CW_CLOSED_MAX_BYTES. Returns 0 or -errno.
 */
int cw_closed_map_update(int map_fd, uint32_t key, const void *value, size_t len);
int cw_closed_map_delete(int map_fd, uint32_t key);
int cw_closed_map_lookup(int map_fd, uint32_t key, void *ret_value, size_t len);

/* ---- for daemon/rights.c ---- */

/* The job of the fork server. Reads files until the daemon closes the socket. */
int cw_closed_files_child(int fd);

/*
 * From now on a child reads the files. fd: our end of the socket to this child, borrowed; -1 =
 * there is no child now. on_late: called when the child has not answered in time; may be NULL.
 */
void cw_closed_files_use(int fd, void (*on_late)(void *user), void *user);
/* Returns whether the child has not answered the last request yet. */
bool cw_closed_files_is_late(void);
