/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that cost the loop nothing. A fork copies the page tables of the calling process. For a
 * daemon with a large heap that blocks the loop for hundreds of milliseconds. So the daemon starts
 * one small process, the fork server, and sends it requests. The server forks and returns the
 * child's pidfd. The child's only descriptor besides /dev/null is its end of a pair of sockets.
 *
 * The server is this program, executed anew. So it never holds memory or descriptors of the daemon,
 * and each new server is as small as the first. It ends when the daemon does. We kill and replace a
 * server that ends or does not answer, and send the waiting requests once more. If the program
 * cannot be executed, the server is a plain fork of the daemon.
 *
 * The caller gives the child nothing important before it has the pidfd: until then we could not
 * kill the child. The server reaps the child. The child reports its result through its socket.
 *
 * Loop thread only; nothing blocks except the start of a server, which waits for execve().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

struct cw_fork_request;
struct cw_fork_server;
struct event_base;

/* Limit of requests that wait for an answer. */
#define CW_FORK_REQUESTS 32u
/* The server's only argument. */
#define CW_FORK_SERVER_OPTION "--fork-server"

/*
 * Runs in the child. fd is the child's end of the pair, a SOCK_SEQPACKET socket. Returns the exit
 * status.
 */
typedef int (*cw_fork_child_fn)(int fd);

/*
 * With r = 0 the child exists. fd is our end of the pair and does not block. The callback owns fd
 * and pidfd; when it closes fd, the child ends. With r < 0 there is no child.
 */
typedef void (*cw_forked_fn)(int r, int fd, int pidfd, void *user);

struct cw_fork_server_config {
	struct event_base *base;
	const struct cw_clock *clock; /* the caller keeps it for the server's life */
	/* All jobs of later requests; the caller keeps them for the server's life. */
	const cw_fork_child_fn *jobs;
	unsigned n_jobs;
	/* This program, whose main() calls cw_fork_server_main(); NULL = a fork of this process. */
	const char *program;
};

/*
 * Creates and starts a server. Returns 0 or -ENOMEM. If the server process cannot be started, the
 * loop tries again.
 */
int cw_fork_server_new(const struct cw_fork_server_config *config, struct cw_fork_server **ret);
/*
 * Frees the server. The waiting requests get no callback, and the process ends by itself. s may be
 * NULL. Returns NULL.
 */
struct cw_fork_server *cw_fork_server_free(struct cw_fork_server *s);

/*
 * Requests a child for one of the jobs. Returns 0, or -errno without a callback (-EAGAIN: too many
 * requests, or no server for now). After 0 the loop calls the callback once; *ret is valid until
 * then.
 */
int cw_fork_server_ask(struct cw_fork_server *s, cw_fork_child_fn job, cw_forked_fn fn, void *user,
		       struct cw_fork_request **ret);
/*
 * Cancels a request, which then gets no callback. If the server forks a child nevertheless, that
 * child ends. request may be NULL. Returns NULL.
 */
struct cw_fork_request *cw_fork_request_cancel(struct cw_fork_request *request);

struct cw_fork_server_stats {
	pid_t pid;     /* pid of the server; 0 = there is none now */
	uint64_t lost; /* number of servers that we have replaced */
	double cpu_s;  /* CPU seconds of the current server and its reaped children; 0 = none */
};
void cw_fork_server_stats(const struct cw_fork_server *s, struct cw_fork_server_stats *ret);

/* For main(). True if this process was started as a fork server. */
bool cw_fork_server_is_wanted(int argc, char **argv);
/* Serves until the daemon ends. Returns the exit status. */
int cw_fork_server_main(const cw_fork_child_fn *jobs, unsigned n_jobs);
