/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that cost the loop nothing. A fork copies the page tables of the process that forks, and
 * of a daemon with a large heap that takes the loop hundreds of milliseconds. So the daemon starts
 * one small process for it, the fork server, and asks that one: it forks, and hands the child's
 * pidfd back. The child's only descriptor, but for /dev/null, is its end of a pair of sockets.
 *
 * The server is this program, executed anew: whenever that is, it holds nothing of the daemon's
 * memory nor of its descriptors, and is as small as at the first start. It ends when the daemon
 * does. One that ends or does not answer is killed and replaced, requests that wait are made again
 * once; where the program cannot be executed, it is a fork of the daemon as it is.
 *
 * A child is given nothing that matters before the daemon has its pidfd: until then nobody could
 * end it. It is the server's to reap; how it fared it says through its socket.
 *
 * Loop thread only; nothing blocks but starting a server, which waits for execve().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

struct cw_fork_request;
struct cw_fork_server;
struct event_base;

/* Requests at once. */
#define CW_FORK_REQUESTS 32u
/* The server's only argument. */
#define CW_FORK_SERVER_OPTION "--fork-server"

/* Runs in the child; fd is its end of the pair, of SOCK_SEQPACKET. Returns the exit status. */
typedef int (*cw_fork_child_fn)(int fd);

/*
 * r = 0: there is a child; fd, the other end of the pair, does not block; both are the callback's
 * to close, and without them the child ends. r < 0: there is none.
 */
typedef void (*cw_forked_fn)(int r, int fd, int pidfd, void *user);

struct cw_fork_server_config {
	struct event_base *base;
	const struct cw_clock *clock; /* borrowed for life */
	const cw_fork_child_fn *jobs; /* all that are ever asked for; borrowed for life */
	unsigned n_jobs;
	/* This program, whose main() calls cw_fork_server_main(); NULL = a fork of this process. */
	const char *program;
};

/* 0 or -ENOMEM. A server that cannot be started is tried again from the loop. */
int cw_fork_server_new(const struct cw_fork_server_config *config, struct cw_fork_server **ret);
/* No callback comes any more; the server ends by itself. Takes NULL; returns NULL. */
struct cw_fork_server *cw_fork_server_free(struct cw_fork_server *s);

/*
 * job is one of the jobs. 0, or -errno (-EAGAIN: too many requests, or no server for now): no
 * callback comes. Else it comes once, from the loop; *ret is valid until then.
 */
int cw_fork_server_ask(struct cw_fork_server *s, cw_fork_child_fn job, cw_forked_fn fn, void *user,
		       struct cw_fork_request **ret);
/* No callback comes; a child that is made nevertheless ends. Takes NULL; returns NULL. */
struct cw_fork_request *cw_fork_request_cancel(struct cw_fork_request *request);

struct cw_fork_server_stats {
	pid_t pid;     /* 0 = none now */
	uint64_t lost; /* servers that were replaced */
	double cpu_s;  /* of servers and children so far */
};
void cw_fork_server_stats(const struct cw_fork_server *s, struct cw_fork_server_stats *ret);

/* For main(): this process was started as a server. */
bool cw_fork_server_is_wanted(int argc, char **argv);
/* Serves until the daemon ends. Returns the exit status. */
int cw_fork_server_main(const cw_fork_child_fn *jobs, unsigned n_jobs);
