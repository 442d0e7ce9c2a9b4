/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the records' descriptors out of agents' connections and looks whether the senders really
 * map them, in a short-lived child with a deadline. Two things can hang for ever here, and neither
 * may hang the daemon:
 *
 *  - Closing a descriptor that is not a memfd (FUSE, NFS) waits for its file system. So the child
 *    receives it, and hands on only what F_GET_SEALS, which asks no file system, knows for a memfd.
 *  - /proc/PID/maps and cmdline take the process's memory lock, which a wedged driver may hold. A
 *    rank whose lock is stuck is the very rank that must be watched: when the child cannot tell (no
 *    permission, no answer in time), the record is accepted, because all that is at stake is what a
 *    user claims about its own process. Only a complete list of mappings without the record says
 *    no. Without this look, whoever was handed a descriptor (a forked child, a helper program)
 *    could register somebody else's record as its own.
 *
 * One child looks at several agents of one user, one after the other: to make it costs as much as
 * dozens of looks. The fork server makes it, so it has neither the daemon's memory nor descriptors
 * but those it is sent. Of agents it did not come to, because one before them held it up, nothing
 * was taken: they are as before.
 *
 * Loop thread only. The deadline is for each agent, from when the child is there; at it the child
 * is killed, and the loop never waits for it; one that cannot be killed is abandoned, and counted
 * against its user until it ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cw_agent_probe;
struct cw_fork_server;
struct event_base;

/* Children at once. */
#define CW_PROBE_MAX 8u
/* Agents for one child: all ranks of a large node's job. */
#define CW_PROBE_MAX_AGENTS 32u

enum cw_agent_probe_answer {
	CW_PROBE_UNKNOWN = 0,
	CW_PROBE_MAPPED,
	CW_PROBE_NOT_MAPPED,
	CW_PROBE_NOT_TAKEN, /* nothing was done, and no descriptor taken */
	CW_PROBE_LOST,      /* the descriptor was taken, and did not come here */
};

struct cw_agent_probe_result {
	enum cw_agent_probe_answer answer;
	int record_fd;       /* a memfd, the callback's to close; -1 = none came */
	const char *command; /* NUL-separated arguments; borrowed */
	size_t command_len;  /* 0 = not to be had */
};

/* Once for each agent, by its number in the request, in their order, a few a turn of the loop while
 * the child lives. */
typedef void (*cw_agent_probe_fn)(unsigned agent, const struct cw_agent_probe_result *result,
				  void *user);
/* After the last result. The probe is gone. was_killed: at the deadline. */
typedef void (*cw_agent_probe_done_fn)(bool was_killed, void *user);

struct cw_agent_probe_agent {
	int conn_fd;      /* borrowed until its result: the child has its own */
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

/* A job of the fork server's. */
int cw_agent_probe_child(int fd);

/* 0, or -errno (-EAGAIN: no process to be had, or CW_PROBE_MAX are at work): no callback comes. */
int cw_agent_probe_start(const struct cw_agent_probe_request *request, struct cw_agent_probe **ret);
/* No callback comes any more; the child is killed. Takes NULL; returns NULL. */
struct cw_agent_probe *cw_agent_probe_cancel(struct cw_agent_probe *probe);

/* Abandoned children that looked at agents of uid and have not ended. */
unsigned cw_agent_probe_abandoned(uid_t uid);
