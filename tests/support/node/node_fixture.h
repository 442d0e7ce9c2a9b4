/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node under test and processes that play agents (tests/support/agent/fake_agent.h), each a fork.
 *
 * Time runs TEST_SPEED times faster for the node than for the machine, so that its seconds pass in
 * tens of ms; no test sleeps: the loop runs until the expected event has happened.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/node/node.h"
#include "identity/job_id.h"
#include "loop/fork_server.h"
#include "tests/support/agent/fake_agent.h"

#define TEST_SPEED 20

/* Its commands and answers: tests/support/agent/fake_agent.h. */
struct agent {
	pid_t pid;
	uint64_t start_ticks;
	int to, from;
};

/* The facts about a rank in the last digest, copied. */
struct seen_rank {
	struct cw_msg_rank rank;
	char command[64], cause[160];
	struct cw_msg_member member; /* the first */
	struct cw_msg_op pending;
	bool has_pending;
};

#define MAX_SEEN 16

struct node_fixture {
	struct event_base *base;
	struct cw_fork_server *forks;
	char dir[64], path[96];
	struct cw_node *node;
	struct cw_node_config config;

	unsigned digests;
	char label[200];
	struct cw_job_id job; /* of the last digest */
	struct seen_rank seen[MAX_SEEN];
	unsigned n_seen;
	/* Of the last digest that told of ranks without a place: its job, those, and other ranks.
	 */
	char untracked_label[200];
	uint32_t untracked, untracked_ranks;
};

/* Starts a node with its socket in a directory of its own. */
void fixture_start(struct node_fixture *f, uint32_t max_processes, uint32_t max_per_uid);
void fixture_stop(struct node_fixture *f);
/* As a restart of the daemon: same socket, nothing remembered. */
void fixture_restart(struct node_fixture *f);

/* Moves the node's clock forward. */
void fixture_skip_ns(int64_t ns);

/* Stops the node's clock, and lets it go on from there. */
void fixture_hold_clock(bool is_held);

/* Runs the loop until done(f, arg); fails the test after 20 s. */
void fixture_run_until(struct node_fixture *f, bool (*done)(struct node_fixture *f, void *arg),
		       void *arg, const char *what);
/*
 * Runs the loop until two more digests have come. For one job, the second has every fact that the
 * node could see before. A round makes one digest per job, so a test with several jobs waits for
 * the facts themselves. The end of a process may come later in any case, even when the test
 * commanded it.
 */
void fixture_next_digest(struct node_fixture *f);

/* Forks an agent; it waits for commands. */
struct agent agent_start(struct node_fixture *f, const struct agent_options *options);
char agent_do(struct node_fixture *f, struct agent *a, char command);
/* agent_start(), then 'c', which must be answered as expected. */
struct agent agent_register(struct node_fixture *f, const struct agent_options *options,
			    char expected);
/* Kills, if it still lives, and reaps. */
void agent_stop(struct agent *a);

/* This process in the last digest; NULL = it is not there. */
const struct seen_rank *fixture_seen(const struct node_fixture *f, const struct agent *a);

struct cw_node_stats fixture_stats(const struct node_fixture *f);
