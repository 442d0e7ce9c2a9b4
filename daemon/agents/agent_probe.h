/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives the records' descriptors from agents' connections and checks that the senders really map
 * them. A short-lived child with a deadline does both, because two things can hang here, and
 * neither may hang the daemon:
 *
 *  - Closing a descriptor that is not a memfd (FUSE, NFS) waits for its file system. So the child
 *    receives it, and passes on only a descriptor that F_GET_SEALS accepts as a memfd. This call
 *    asks no file system.
 *  - /proc/PID/maps and cmdline take the process's memory lock, which a wedged driver may hold. A
 *    rank whose lock is stuck is the very rank that we must watch. If the child cannot tell (no
 *    permission, no answer in time), we accept the record: at stake is only a user's claim about
 *    its own process. We reject it only if a complete list of mappings lacks the record. Without
 *    this check, a forked child or a helper program that received a descriptor could register
 *    another process's record as its own.
 *
 * One child checks several agents of one user, one after the other, because making a child costs as
 * much as dozens of checks. The fork server makes it, so it has none of the daemon's memory, and
 * only the descriptors that we send it. If one agent holds up the child, the child takes nothing
 * from the agents after it: they stay as before.
 *
 * Loop thread only. Each agent has its own deadline, and the first one starts once the child
 * exists. At a deadline we kill the child, and the loop never waits for it. If a child survives
 * SIGKILL, we abandon it, and count it against its user until it ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cw_agent_probe;
struct cw_fork_server;
struct event_base;

/* The limit of concurrent children. */
#define CW_PROBE_MAX 8u
/* The limit of agents for one child. All ranks of a large node's job fit. */
#define CW_PROBE_MAX_AGENTS 32u

enum cw_agent_probe_answer {
	CW_PROBE_UNKNOWN = 0,
	CW_PROBE_MAPPED,
	CW_PROBE_NOT_MAPPED,
	CW_PROBE_NOT_TAKEN, /* the descriptor is still in the connection */
	CW_PROBE_LOST,      /* the child took the descriptor, but we did not get it */
};

struct cw_agent_probe_result {
	enum cw_agent_probe_answer answer;
	int record_fd;       /* a memfd that the callback must close; -1 = none */
	const char *command; /* NUL-separated arguments; borrowed */
	size_t command_len;  /* 0 = unavailable */
};

/*
 * Called once for each agent, in order. agent is its index in the request. While the child lives, a
 * few results come per iteration of the loop.
 */
typedef void (*cw_agent_probe_fn)(unsigned agent, const struct cw_agent_probe_result *result,
				  void *user);
/*
 * Called after the last result, when the probe no longer exists. was_killed: we killed the child at
 * the deadline.
 */
typedef void (*cw_agent_probe_done_fn)(bool was_killed, void *user);

struct cw_agent_probe_agent {
	int conn_fd;      /* borrowed until the agent's result: the child gets a duplicate */
	size_t frame_len; /* bytes of the hello, at most 512 */
	pid_t pid;
};

struct cw_agent_probe_request {
	struct event_base *base;
	struct cw_fork_server *forks;              /* borrowed until the last result */
	const struct cw_agent_probe_agent *agents; /* borrowed for the call */
	unsigned n;                                /* at most CW_PROBE_MAX_AGENTS */
	uid_t uid;
	unsigned timeout_ms; /* for each agent */
	cw_agent_probe_fn fn;
	cw_agent_probe_done_fn done;
	void *user;
};

/* The entry point of the child. The fork server calls it. */
int cw_agent_probe_child(int fd);

/*
 * Starts a child. On -errno no callback comes. -EAGAIN: no process is available, or CW_PROBE_MAX
 * children are at work.
 */
int cw_agent_probe_start(const struct cw_agent_probe_request *request, struct cw_agent_probe **ret);
/*
 * Kills the child and waits at most 20 ms for its end. No callback comes after this call. Takes
 * NULL; returns NULL.
 */
struct cw_agent_probe *cw_agent_probe_cancel(struct cw_agent_probe *probe);

/* Returns the number of abandoned children that checked agents of uid and have not ended. */
unsigned cw_agent_probe_abandoned(uid_t uid);
