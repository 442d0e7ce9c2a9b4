/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that cost the loop nothing. A fork copies the page tables of the calling process. In a
 * daemon with a large heap it blocks the loop for hundreds of milliseconds. The daemon therefore
 * starts one small process, the fork server, and sends it requests. The server forks and returns
 * the child's pidfd. Besides /dev/null the child has one descriptor: its end of a pair of sockets.
 *
 * The server is this program, executed anew. It therefore never holds memory or descriptors of the
 * daemon, and each new server is as small as the first. The server ends when the daemon ends. If
 * the program cannot be executed, the server is a plain fork of the daemon.
 *
 * The server keeps the capabilities that the daemon had when it started, also after the daemon has
 * dropped its own. Each job states the capabilities that its children keep. The daemon could not
 * start another server with capabilities. The server therefore has a parent, the keeper, which only
 * replaces a server that ends. We kill a server that does not answer, and send the waiting requests
 * once more.
 *
 * The caller must give the child nothing important before it has the pidfd, because until then we
 * cannot kill the child. The server reaps the child. The child reports its result through its
 * socket.
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
/*
 * These places are only for jobs with is_reserved. Strangers can cause requests of other jobs only,
 * so they cannot take these places.
 */
#define CW_FORK_RESERVED 2u
/* The server's only argument on its command line. */
#define CW_FORK_SERVER_OPTION "--fork-server"

/*
 * Runs in the child. fd is the child's end of the pair, a SOCK_SEQPACKET socket. Returns the exit
 * status.
 */
typedef int (*cw_fork_child_fn)(int fd);

struct cw_fork_job {
	cw_fork_child_fn run;
	/* Capabilities that the child keeps if the server has them, as bits (1 << CAP_X). */
	uint64_t capabilities;
	bool is_reserved; /* may use the last CW_FORK_RESERVED places of requests */
};
#define CW_FORK_ALL_CAPABILITIES UINT64_MAX

/*
 * Reports the result of a request. With r = 0 the child exists. fd is our end of the pair and does
 * not block. The callback owns fd and pidfd; when it closes fd, the child ends. With r < 0 there is
 * no child.
 */
typedef void (*cw_forked_fn)(int r, int fd, int pidfd, void *user);

struct cw_fork_server_config {
	struct event_base *base;
	const struct cw_clock *clock; /* borrowed for the server's life */
	/* All jobs that later requests may name. Borrowed for the server's life. */
	const struct cw_fork_job *jobs;
	unsigned n_jobs;
	/*
	 * Path of this program, whose main() must call cw_fork_server_main(). NULL = the server is
	 * a fork of this process.
	 */
	const char *program;
	/*
	 * Called if the keeper is lost. False = do not start another one, because it would lack
	 * the capabilities; all later requests then fail. NULL = always start another one.
	 */
	bool (*may_replace)(void *user);
	void *user;
};

/*
 * Creates and starts a server. Returns 0 or -ENOMEM. If the server process does not start, the loop
 * tries again later.
 */
int cw_fork_server_new(const struct cw_fork_server_config *config, struct cw_fork_server **ret);
/*
 * Frees the server. The waiting requests get no callback, and the server process ends by itself. s
 * may be NULL. Returns NULL.
 */
struct cw_fork_server *cw_fork_server_free(struct cw_fork_server *s);

/*
 * Requests a child that runs one of the jobs. Returns 0, or -errno without a callback (-EAGAIN: too
 * many requests, or no server for now). After 0 the loop calls the callback once; *ret is valid
 * until then.
 */
int cw_fork_server_ask(struct cw_fork_server *s, cw_fork_child_fn job, cw_forked_fn fn, void *user,
		       struct cw_fork_request **ret);
/*
 * Cancels a request. Its callback does not run. If the server forks a child nevertheless, that
 * child ends. request may be NULL. Returns NULL.
 */
struct cw_fork_request *cw_fork_request_cancel(struct cw_fork_request *request);

struct cw_fork_server_stats {
	pid_t pid;     /* pid of the server; 0 = unknown, or there is none now */
	uint64_t lost; /* number of replaced servers */
	/* CPU seconds of the current server and its reaped children; 0 = no server. */
	double cpu_s;
};
void cw_fork_server_stats(const struct cw_fork_server *s, struct cw_fork_server_stats *ret);

/* Returns whether main() runs in a process that was started as a fork server. */
bool cw_fork_server_is_wanted(int argc, char **argv);
/*
 * Serves requests until the daemon ends. main() calls it in a fork server. Returns the exit status.
 */
int cw_fork_server_main(const struct cw_fork_job *jobs, unsigned n_jobs);
