/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Target processes for stacks, and the code that takes their stacks in a child, as the daemon does.
 * The targets are forks of the test itself, so the test has functions with the names of a rank's.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/evidence/stack.h"

#define NOBODY 65534

/* Shared with the target. */
struct board {
	atomic_uint ready;
	atomic_uint_fast64_t beats;
	atomic_uint interrupted; /* calls that returned EINTR */
};

extern struct board *board;
extern int pipe_fds[2];
extern pid_t target; /* killed and reaped at the end, if > 0 */

void stack_fixture_set_up(void);
void stack_fixture_tear_down(void);

/* A target's work: train_step() calls data_loader_next(), which reads pipe_fds[0]. */
int run_reader(void);
/*
 * The same beside three threads: the first waits, the second sits in epoll_wait(), the
 * third is the agent's.
 */
int run_threads(void);
/* Counts board->beats and never returns. */
int spin_kernel(void);

/* Forks it; uid 0 = as this process. */
pid_t start_target(int (*run)(void), uid_t uid);
/* Until the thread sleeps in this system call (and n threads have said so). */
void wait_until_in(pid_t tid, long number, unsigned n);
char state_of(pid_t pid);
void wait_for_state(pid_t pid, char state);
/* It shows host activity and no process traces it. */
void expect_alive(void);
/* Lets a reader read; it must end well, and no call of it may have been interrupted. */
void finish_reader(void);

struct cw_stack_target target_of(pid_t pid, uid_t uid);
/*
 * Parses a child's output with cw_stack_output_read(); main: the child's function. Tries again if
 * the machine was too busy to hold a thread as briefly as required.
 */
json_t *look_at(const struct cw_stack_target *t);
json_t *look_at_by(int (*main)(int out_fd, const void *arg), const struct cw_stack_target *t);
const char *text_of(const json_t *object, const char *key);
const json_t *thread_named(const json_t *native, const char *name);
/* Index of the frame with that symbol, -1 = none. */
int frame_of(const json_t *thread, const char *symbol);
void expect_reader(const json_t *native);

int64_t now_ns(void);
