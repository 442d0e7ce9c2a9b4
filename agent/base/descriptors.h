/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's descriptors: few, out of the way, and known by what they stand for, because a program
 * may close any number and get it again for a file of its own.
 *
 * The helper thread has a descriptor table of its own. A program counts on the lowest free number
 * being its own: where the thread's socket held it for a moment, the program's next file got
 * another one, and kept it. So the thread leaves the program's table, taking nothing along (not
 * even for a moment: a copy of a pipe's end would delay its reader's end of file, and closing a
 * copy would swallow an error that close() should tell the program), and opens what it needs of the
 * program's through /proc.
 *
 * Where that cannot be (Linux before 5.9, a filter of system calls, no /proc) the thread stays, and
 * takes care as well as it can: cw_fd_dup_high().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* What a descriptor stands for: tells whether a number still is what it was. */
struct cw_fd_identity {
	dev_t dev;
	ino_t ino;
};

/* Return: 0 or -errno. */
int cw_fd_identify(int fd, struct cw_fd_identity *ret_id);

/* True when fd is open and still the same object. */
bool cw_fd_is(int fd, const struct cw_fd_identity *id);

/*
 * Moves fd to a number >= 1000 where the limit allows, out of the way of programs that count
 * descriptors. Takes fd. Return: a descriptor with CLOEXEC.
 */
int cw_fd_dup_high(int fd);

/* A memfd that may be sealed, as little executable as the kernel knows; -errno. */
int cw_memfd(const char *name);

/* ---- the helper thread's table ---- */

/*
 * Whether needed can be reached from another table. Asked by whoever starts the helper thread: the
 * program may have closed everything or changed its root before the thread gets to run, and must
 * not share its table with it for that.
 */
bool cw_fd_table_can_unshare(int needed, const struct cw_fd_identity *id);

/* The helper thread's first act, once. */
void cw_fd_table_unshare(void);

/*
 * The helper thread's way to a descriptor of the program's table that still is the object it was:
 * the same number, or one opened anew with these flags of open(), which cw_fd_release() closes.
 * -EBADF when it is something else by now.
 */
int cw_fd_reopen(int fd, const struct cw_fd_identity *id, int flags);
void cw_fd_release(int reached);
