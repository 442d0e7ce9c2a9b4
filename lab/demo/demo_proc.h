/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes the demo starts. Each leads a process group of its own and dies with the demo, however
 * that ends; its output comes line by line through the event loop and is kept in a log file.
 *
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

struct event_base;
struct bufferevent;
struct demo_net;
struct demo_proc;

typedef void (*demo_proc_line_fn)(struct demo_proc *proc, const char *line, void *user);

struct demo_proc {
	char name[32]; /* "rank 3", "node-a" */
	pid_t pid;     /* 0 = not started */
	bool has_ended;
	int wait_status; /* of waitpid(), once it has ended */
	struct bufferevent *output;
	int log_fd;
	demo_proc_line_fn on_line; /* NULL = nobody reads */
	void *user;
};

struct demo_proc_spec {
	const char *name;
	char *const *argv;          /* argv[0] is looked up in PATH */
	const char *const *env;     /* "NAME=value" over the environment of the demo; NULL ends */
	const char *log_path;       /* appended to */
	const char *cgroup_procs;   /* of the control group it runs in; NULL = ours */
	const struct demo_net *net; /* whose node it runs in; NULL = where we are */
	int node;
	demo_proc_line_fn on_line;
	void *user;
};

/*
 * Starts a process. proc must stay where it is until demo_proc_fini(). An argv[0] that cannot be
 * run shows as exit status 127. 0 or -errno.
 */
int demo_proc_start(struct demo_proc *proc, struct event_base *base,
		    const struct demo_proc_spec *spec, struct cw_err *err);

/*
 * Collects ended children (call it on SIGCHLD): marks those of procs[0..n) that have ended and
 * returns how many did. Others, which came to us as orphans, are forgotten.
 */
unsigned demo_proc_reap(struct demo_proc *const *procs, unsigned n);

/*
 * Whether a process of ours may see in which call another one of ours sleeps, as a daemon does with
 * ranks, whose parent it is not. Blocks for as long as that takes to find out.
 */
bool demo_proc_may_look(void);

/* Sends signo to the whole group of a process that has not ended. */
void demo_proc_signal(const struct demo_proc *proc, int signo);

/* "exited with status 1", "was killed by signal 9 (Killed)"; returns buf. */
char *demo_proc_describe_end(const struct demo_proc *proc, char *buf, size_t len);

/* Closes pipe and log; takes a zeroed proc too. Does not stop the process. */
void demo_proc_fini(struct demo_proc *proc);

/* Kills and collects whatever child is left, orphans of our children included. Blocks briefly. */
void demo_proc_kill_all_children(void);
