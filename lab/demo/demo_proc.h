/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of the demo. Each process leads its own process group and dies with the demo, even if
 * the demo crashes. The event loop reads its output line by line, passes on each line, and writes
 * it to a log file.
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
	int wait_status; /* result of waitpid() after the end */
	struct bufferevent *output;
	int log_fd;
	demo_proc_line_fn on_line; /* called for each line; NULL = none */
	void *user;
};

struct demo_proc_spec {
	const char *name;
	char *const *argv; /* argv[0] is looked up in PATH */
	/* "NAME=value", NULL-terminated; added to the environment of the demo. */
	const char *const *env;
	const char *log_path; /* we append to this file */
	/* cgroup.procs of the process's control group; NULL = our control group */
	const char *cgroup_procs;
	/* the network of its node; NULL = the process runs where we do */
	const struct demo_net *net;
	int node;
	demo_proc_line_fn on_line;
	void *user;
};

/*
 * Starts a process. proc must not move until demo_proc_fini(). If exec of argv[0] fails, the
 * process ends with exit status 127. Returns 0 or -errno.
 */
int demo_proc_start(struct demo_proc *proc, struct event_base *base,
		    const struct demo_proc_spec *spec, struct cw_err *err);

/*
 * Collects ended children after SIGCHLD. Marks those of procs[0..n) that have ended, and returns
 * their number. Any other child is an orphan that we adopted, and needs no action.
 */
unsigned demo_proc_reap(struct demo_proc *const *procs, unsigned n);

/*
 * True if one of our processes may see in which call another one sleeps. A daemon looks at ranks in
 * this way, and they are not its children. Blocks while it tries.
 */
bool demo_proc_may_look(void);

/* Sends signo to the whole group of a running process. */
void demo_proc_signal(const struct demo_proc *proc, int signo);

/*
 * Writes a text such as "exited with status 1" or "was killed by signal 9 (Killed)". Returns buf.
 */
char *demo_proc_describe_end(const struct demo_proc *proc, char *buf, size_t len);

/* Closes the pipe and the log. Does not stop the process. Accepts a zeroed proc. */
void demo_proc_fini(struct demo_proc *proc);

/* Kills and collects all remaining children, adopted orphans included. Blocks briefly. */
void demo_proc_kill_all_children(void);
