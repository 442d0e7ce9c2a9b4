/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node under test, and forked processes that play agents (tests/support/agent/fake_agent.h).
 *
 * Time runs TEST_SPEED times faster for the node than for the machine, so the node's seconds pass
 * in tens of ms. No test sleeps. The loop runs until the expected event has happened.
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

/* An agent. tests/support/agent/fake_agent.h has its commands and answers. */
struct agent {
	pid_t pid;
	uint64_t start_ticks;
	int to, from;
};

/* The facts about a rank in the last digest, copied. */
struct seen_rank {
	struct cw_msg_rank rank;
	char command[64], cause[160];
	struct cw_msg_member member; /* the rank's first membership */
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
	struct cw_job_id job; /* the job of the last digest */
	struct seen_rank seen[MAX_SEEN];
	unsigned n_seen;
	/*
	 * From the last digest with untracked ranks: its job, the number of these ranks, and the
	 * number of other ranks.
	 */
	char untracked_label[200];
	uint32_t untracked, untracked_ranks;
};

/* Starts a node with its socket in a new directory. */
void fixture_start(struct node_fixture *f, uint32_t max_processes, uint32_t max_per_uid);
void fixture_stop(struct node_fixture *f);
/* Restarts the daemon: it has the same socket, and remembers nothing. */
void fixture_restart(struct node_fixture *f);

/* Moves the node's clock forward. */
void fixture_skip_ns(int64_t ns);

/* Stops the node's clock, or lets it go on. */
void fixture_hold_clock(bool is_held);

/* Runs the loop until done(f, arg); fails the test after 20 s. */
void fixture_run_until(struct node_fixture *f, bool (*done)(struct node_fixture *f, void *arg),
		       void *arg, const char *what);
/*
 * Runs the loop until two more digests have come. For one job, the second digest has every fact
 * that the node could see before the call. A job gets one digest at a time. So a test with several
 * jobs waits for the facts themselves. The end of a process may come later in any case, even if the
 * test commanded it.
 */
void fixture_next_digest(struct node_fixture *f);

/* Forks an agent, which waits for commands. */
struct agent agent_start(struct node_fixture *f, const struct agent_options *options);
char agent_do(struct node_fixture *f, struct agent *a, char command);
/*
 * Calls agent_start() and sends the command 'c'. Fails the test if the answer is not the expected
 * one.
 */
struct agent agent_register(struct node_fixture *f, const struct agent_options *options,
			    char expected);
/* Kills the agent if it still lives, and reaps it. */
void agent_stop(struct agent *a);

/* Returns the facts about this process in the last digest; NULL = it is not in the digest. */
const struct seen_rank *fixture_seen(const struct node_fixture *f, const struct agent *a);

struct cw_node_stats fixture_stats(const struct node_fixture *f);
