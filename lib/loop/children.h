/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short-lived children for work that can hang or crash. A function runs in a process that has
 * closed all descriptors except its output pipe. The pool collects the output of the child, up to a
 * limit and before a deadline.
 *
 * A child is a fork of this process, or a child of the fork server (loop/fork_server.h). The latter
 * copies no memory of ours, and has the capabilities of its job. A supervisor is its parent,
 * because we may lack the right to kill a child that has become another user. The supervisor kills
 * the child when we close the socket.
 *
 * We kill a child that does not end. Some children survive SIGKILL, because they or a child of
 * theirs sleep uninterruptibly on a dead file system. We abandon such a child: its caller gets the
 * result at once, and the pool reaps the child when it ends.
 *
 * Loop thread only; nothing blocks except cw_children_free().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loop/fork_server.h"

struct event_base;
struct cw_children;
struct cw_child;

enum cw_child_end {
	CW_CHILD_EXITED,    /* exited with status 0 */
	CW_CHILD_CRASHED,   /* ended by a signal, or with another status */
	CW_CHILD_TIMED_OUT, /* we killed it at its deadline */
	CW_CHILD_OVERFLOW,  /* we killed it because it wrote more than max_output */
	CW_CHILD_ABANDONED, /* we killed it, but one of its processes survived */
};

/*
 * Runs in the child. Returns the exit status. out_fd is blocking. The descriptors of the
 * configuration have the numbers from CW_CHILD_FD on.
 */
typedef int (*cw_child_main_fn)(int out_fd, const void *arg);

#define CW_CHILD_FD 4
#define CW_CHILD_MAX_FDS 1u

/*
 * Receives the end of the child and its output, even after a failure. `output` is valid until the
 * callback returns.
 */
typedef void (*cw_child_done_fn)(enum cw_child_end end, const char *output, size_t len, void *user);

struct cw_child_config {
	cw_child_main_fn main;
	/*
	 * Argument of main. The child has its own copy, so the caller may free this one after
	 * cw_child_start().
	 */
	const void *arg;
	uint32_t deadline_ms;
	size_t max_output;
	cw_child_done_fn fn;
	/*
	 * Called whenever more output has come, with all output so far; NULL = only at the end.
	 * Must not cancel the child.
	 */
	void (*on_more)(const char *output, size_t len, void *user);
	void *user;
	uid_t uid; /* owner of the processes that the child inspects; 0 = no particular user */
	/*
	 * The server that forks the child. The child runs `job`, which calls cw_child_run(fd, main),
	 * and `arg` has arg_len bytes without pointers. NULL = the child is a fork of this process.
	 */
	struct cw_fork_server *forks;
	cw_fork_child_fn job;
	size_t arg_len;
	/* Descriptors that the child gets. Borrowed until cw_child_start() returns. */
	int fds[CW_CHILD_MAX_FDS];
	unsigned n_fds;
};

/*
 * Limit of abandoned children per user. Each of them is a task of the daemon's unit, which may have
 * 64 tasks (TasksMax=). At the limit, callers start no further child for that user.
 */
#define CW_CHILD_MAX_ABANDONED 2u

int cw_children_new(struct event_base *base, struct cw_children **ret);
/*
 * Kills and reaps all children, and frees the pool. Waits about 200 ms for children that do not
 * die, however many there are. No callback runs. pool may be NULL. Returns NULL.
 */
struct cw_children *cw_children_free(struct cw_children *pool);

/*
 * Starts a child. Returns 0 or -errno. After 0 the loop later calls the callback once; *ret_child
 * is valid until then.
 */
int cw_child_start(struct cw_children *pool, const struct cw_child_config *config,
		   struct cw_child **ret_child);
/* Body of a job of the fork server. fd is the job's end of the pair. Returns the exit status. */
int cw_child_run(int fd, cw_child_main_fn main);
/* Kills the child. Its callback does not run. */
void cw_child_cancel(struct cw_child *child);

/* Returns the number of abandoned children that still exist. */
uint32_t cw_children_abandoned(const struct cw_children *pool);
/* Returns how many abandoned children still exist that were started for this user. */
uint32_t cw_children_abandoned_of(const struct cw_children *pool, uid_t uid);
