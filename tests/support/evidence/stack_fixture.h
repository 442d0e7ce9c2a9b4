/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target processes whose stacks we read, and code that reads stacks in a child, as the daemon does.
 * The targets are forks of the test itself, so the test contains functions with the names of a
 * rank's functions.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/evidence/stack.h"

#define NOBODY 65534

/* Memory that the test shares with the target. */
struct board {
	atomic_uint ready;
	atomic_uint_fast64_t beats;
	atomic_uint interrupted; /* number of calls that returned EINTR */
};

extern struct board *board;
extern int pipe_fds[2];
extern pid_t target; /* if > 0, we kill and reap it at the end */

void stack_fixture_set_up(void);
void stack_fixture_tear_down(void);

/* Work of a target: train_step() calls data_loader_next(), which reads pipe_fds[0]. */
int run_reader(void);
/*
 * Work of a target with three more threads: the first waits, the second is in epoll_wait(), and the
 * third is the agent's. The main thread does the work of run_reader().
 */
int run_threads(void);
/* Counts board->beats and never returns. */
int spin_kernel(void);

/* Forks a target that calls run(). uid 0 = the user of this process. */
pid_t start_target(int (*run)(void), uid_t uid);
/* Waits until the thread sleeps in this system call, and n threads have reported themselves. */
void wait_until_in(pid_t tid, long number, unsigned n);
char state_of(pid_t pid);
void wait_for_state(pid_t pid, char state);
/* Asserts that the target shows host activity and that no process traces it. */
void expect_alive(void);
/*
 * Lets a target finish its read. Asserts that it ends well, and that no call of it was interrupted.
 */
void finish_reader(void);

struct cw_stack_target target_of(pid_t pid, uid_t uid);
/*
 * Reads the target's stacks in a child and parses its output with cw_stack_output_read(). main: the
 * child's function. On a busy machine, a child may hold a thread for too long; we then try again.
 */
json_t *look_at(const struct cw_stack_target *t);
json_t *look_at_by(int (*main)(int out_fd, const void *arg), const struct cw_stack_target *t);
const char *text_of(const json_t *object, const char *key);
const json_t *thread_named(const json_t *native, const char *name);
/* Returns the index of the frame with that symbol; -1 = none. */
int frame_of(const json_t *thread, const char *symbol);
void expect_reader(const json_t *native);

int64_t now_ns(void);
