/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives the record's descriptor from an agent's connection, and checks that the agent's process
 * really maps this record. A short-lived child with a deadline does this work, because two steps
 * can hang and must not hang the daemon:
 *
 *  - Closing a descriptor that is not a memfd (FUSE, NFS) waits for its file system. The child
 *    therefore receives the descriptor. It passes on only a descriptor that F_GET_SEALS accepts as
 *    a memfd. F_GET_SEALS does not call the file system.
 *  - Reading /proc/PID/maps and cmdline takes the process's memory lock, which a wedged driver may
 *    hold. A rank whose lock is stuck is the very rank that we must watch. If the child cannot read
 *    the mappings (no permission, no answer in time), we therefore accept the record. Only a user's
 *    claim about its own process is at stake. We reject the record only if a complete list of
 *    mappings lacks it. Without this check, a forked child or a helper program could inherit the
 *    descriptor and register another process's record as its own.
 *
 * One child checks several agents of one user, one after the other, because creating a child costs
 * as much as dozens of checks. The fork server creates the child. The child therefore has none of
 * the daemon's memory, and only the descriptors that we send it. If one agent holds up the child,
 * the child does not touch the hellos of the agents after it.
 *
 * Loop thread only. Each agent has its own deadline. The first deadline starts when the child
 * exists. At a deadline we kill the child, and the loop never waits for it. If a child survives
 * SIGKILL, we abandon it. We count it against its user until it ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cw_agent_probe;
struct cw_fork_server;
struct event_base;

/* Maximum number of children at the same time. */
#define CW_PROBE_MAX 8u
/* Maximum number of agents per child. All ranks of one job on a large node fit. */
#define CW_PROBE_MAX_AGENTS 32u

enum cw_agent_probe_answer {
	CW_PROBE_UNKNOWN = 0,
	CW_PROBE_MAPPED,
	CW_PROBE_NOT_MAPPED,
	CW_PROBE_NOT_TAKEN, /* the child did not receive the hello: it is still in the connection */
	CW_PROBE_LOST,      /* the child received the descriptor, but could not pass it on to us */
};

struct cw_agent_probe_result {
	enum cw_agent_probe_answer answer;
	int record_fd;       /* a memfd, which the callee must close; -1 = none */
	const char *command; /* command line: arguments with NULs between them; borrowed */
	size_t command_len;  /* 0 = the command line could not be read */
};

/*
 * Receives the result of one agent. Called once for each agent, in order. agent: its index in the
 * request. While the child lives, one iteration of the loop makes only a few calls.
 */
typedef void (*cw_agent_probe_fn)(unsigned agent, const struct cw_agent_probe_result *result,
				  void *user);
/*
 * Called after the last result. The probe no longer exists then. was_killed: the child missed a
 * deadline, and we killed it.
 */
typedef void (*cw_agent_probe_done_fn)(bool was_killed, void *user);

struct cw_agent_probe_agent {
	int conn_fd;      /* borrowed until this agent's result; the child gets a duplicate */
	size_t frame_len; /* bytes of the agent's hello, at most 512 */
	pid_t pid;
};

struct cw_agent_probe_request {
	struct event_base *base;
	struct cw_fork_server *forks;              /* borrowed until the last result */
	const struct cw_agent_probe_agent *agents; /* borrowed for the call */
	unsigned n;                                /* at most CW_PROBE_MAX_AGENTS */
	uid_t uid;
	unsigned timeout_ms; /* deadline for each agent */
	cw_agent_probe_fn fn;
	cw_agent_probe_done_fn done;
	void *user;
};

/* The main function of the child, which the fork server calls. */
int cw_agent_probe_child(int fd);

/*
 * Starts a child. Returns 0 or -errno; after an error no callback follows. -EAGAIN: the fork server
 * has no process for us, or CW_PROBE_MAX children are at work.
 */
int cw_agent_probe_start(const struct cw_agent_probe_request *request, struct cw_agent_probe **ret);
/*
 * Kills the child and waits at most 20 ms for its end. No callback follows. Takes NULL; returns
 * NULL.
 */
struct cw_agent_probe *cw_agent_probe_cancel(struct cw_agent_probe *probe);

/*
 * Returns the number of children that checked agents of uid, survived SIGKILL, and have not ended
 * yet.
 */
unsigned cw_agent_probe_abandoned(uid_t uid);
