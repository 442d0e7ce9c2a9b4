/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent holds few descriptors and gives them high numbers. A program may close any number and
 * reuse it for its own file. We therefore identify each descriptor by its device and inode before
 * we use it.
 *
 * The helper thread has its own descriptor table. A program expects open() to return the lowest
 * free number. If our socket held that number even briefly, the program's next file would get
 * another number and keep it. The helper thread therefore leaves the program's table. It opens
 * those files of the program that it needs through /proc. It copies no descriptor of the program,
 * not even for a moment. A copied pipe end would delay the reader's end of file. And if we closed a
 * copy, the program's close() would not return the file's error.
 *
 * Linux before 5.9, a system call filter or a missing /proc can prevent a table of its own. The
 * thread then stays in the program's table and only uses high numbers: see cw_fd_dup_high().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Identifies the object behind a descriptor. A changed identity shows that the program has reused
 * the number.
 */
struct cw_fd_identity {
	dev_t dev;
	ino_t ino;
};

/* Stores the identity of the object behind fd in *ret_id. Returns 0 or -errno. */
int cw_fd_identify(int fd, struct cw_fd_identity *ret_id);

/* Returns whether fd is open and still refers to the object in id. */
bool cw_fd_is(int fd, const struct cw_fd_identity *id);

/*
 * Moves fd to a number >= 1000, or to a lower one if RLIMIT_NOFILE demands it. The low numbers stay
 * free for the program. Takes ownership of fd. Returns a descriptor with CLOEXEC; fd itself if it
 * is high enough or the move fails; -EBADF if the program has closed fd meanwhile.
 */
int cw_fd_dup_high(int fd);

/*
 * Makes a memfd that the caller can seal. The memfd is not executable if the kernel supports that.
 * Returns a descriptor or -errno.
 */
int cw_memfd(const char *name);

/* ---- the helper thread's table ---- */

/*
 * Returns whether the helper thread can reopen the descriptor `needed` from its own table. The
 * thread that starts the helper thread makes this check in advance. By the time the helper thread
 * runs, the program may have closed its descriptors or changed its root. Even then the helper
 * thread must not share the program's table.
 */
bool cw_fd_table_can_unshare(int needed, const struct cw_fd_identity *id);

/*
 * Gives the helper thread its own table. The helper thread calls this function once, before all
 * else.
 */
void cw_fd_table_unshare(void);

/*
 * Lets the helper thread use a descriptor of the program's table. If the helper thread shares the
 * program's table, returns fd itself. Otherwise returns a new descriptor, opened with these flags
 * of open(). Returns -EBADF if fd is no longer the object in id. The caller must pass the result to
 * cw_fd_release(), which closes only a new descriptor.
 */
int cw_fd_reopen(int fd, const struct cw_fd_identity *id, int flags);
void cw_fd_release(int reached);
