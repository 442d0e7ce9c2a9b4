/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node under test and processes that play agents: each is forked, makes a small flight record of
 * its own, and does what single-letter commands tell it.
 *
 * Time runs TEST_SPEED times faster for the node than for the machine, so that its seconds pass in
 * tens of ms; nobody sleeps: the loop runs until what is waited for has happened.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/node.h"

#define TEST_SPEED 20

enum agent_flaw { /* what is wrong with this agent's registration */
		  AGENT_OK = 0,
		  AGENT_UNSEALED,
		  AGENT_NO_FD,
		  AGENT_NOT_MAPPED,
		  AGENT_NO_RECORD,    /* the descriptor is a pipe */
		  AGENT_TOO_NEW,      /* wants protocol versions we do not have */
		  AGENT_GARBAGE,      /* a frame of random bytes */
		  AGENT_HUGE_FRAME,   /* claims 4 GiB */
		  AGENT_WRONG_FIRST,  /* another message before the hello */
		  AGENT_NEWER_RECORD, /* of a version that we cannot read */
		  AGENT_NEXT_VERSION, /* newer in all, and it says that we can read it: no flaw */
};

struct agent_options {
	int32_t rank;
	const char *job;
	uint64_t comm_id;
	enum agent_flaw flaw;
	/* Instead of fork(2): 0 in the agent. The process it returns is the one to be reaped. */
	pid_t (*fork)(void);
};

/*
 * Commands, each answered by one letter ('k' unless said):
 *	c connect and say hello: 'W' welcome, 'R' refused, 'X' connection closed
 *	d disconnect	n make a new record (not sent yet)
 *	o enter an op	r return from it
 *	p answer one request for Python stacks with the text "stacks of PID"
 *	q answer a request nobody made, then 'k' when the daemon has not hung up
 *	f the same 50 times, each with a descriptor attached
 *	m send 200 messages that make no sense: 'X' when the daemon hangs up
 *	b burn 100 ms of CPU
 * These end it, without an answer:
 *	e exit(3)	0 exit(0)	1 exit(1)	a abort	s write to address 0
 *	g take memory until it is killed for it
 */
struct agent {
	pid_t pid;
	uint64_t start_ticks;
	int to, from;
};

/* What the last digest said about a rank, copied. */
struct seen_rank {
	struct cw_msg_rank rank;
	char command[64], cause[160];
	struct cw_msg_member member; /* the first */
	struct cw_op pending;
	bool has_pending;
};

#define MAX_SEEN 16

struct node_fixture {
	struct event_base *base;
	char dir[64], path[96];
	struct cw_node *node;
	struct cw_node_config config;

	unsigned digests;
	char label[200];
	uint64_t route;
	struct seen_rank seen[MAX_SEEN];
	unsigned n_seen;
};

/* Starts a node with its socket in a directory of its own. */
void fixture_start(struct node_fixture *f, uint32_t max_processes, uint32_t max_per_uid);
void fixture_stop(struct node_fixture *f);
/* As a restart of the daemon: same socket, nothing remembered. */
void fixture_restart(struct node_fixture *f);

/* Moves the node's clock forward. */
void fixture_skip_ns(int64_t ns);

/* Runs the loop until done(f, arg); fails the test after 20 s. */
void fixture_run_until(struct node_fixture *f, bool (*done)(struct node_fixture *f, void *arg),
		       void *arg, const char *what);
/* Runs the loop until two more digests came: what happened before is in the second. */
void fixture_next_digest(struct node_fixture *f);

/* Forks an agent; it waits for commands. */
struct agent agent_start(struct node_fixture *f, const struct agent_options *options);
char agent_do(struct node_fixture *f, struct agent *a, char command);
/* agent_start(), then 'c', which must be answered as expected. */
struct agent agent_register(struct node_fixture *f, const struct agent_options *options,
			    char expected);
/* Kills, if it still lives, and reaps. */
void agent_stop(struct agent *a);

/* What the last digest says about this process; NULL = nothing. */
const struct seen_rank *fixture_seen(const struct node_fixture *f, const struct agent *a);

struct cw_node_stats fixture_stats(const struct node_fixture *f);
