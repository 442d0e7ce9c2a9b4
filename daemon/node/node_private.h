/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by node.c (what happens by itself) and node_ask.c (what others ask). */
#pragma once

#include "daemon/agents/agents.h"
#include "daemon/node/absent.h"
#include "daemon/node/digest_round.h"
#include "daemon/node/node.h"
#include "daemon/node/python_requests.h"
#include "daemon/process/process.h"

struct cw_registrar;

struct cw_node {
	struct cw_node_config config;
	char *socket_path; /* to be removed; NULL = not ours */
	char *node_name;
	struct cw_agents *agents;
	struct cw_registrar *registrar;
	struct cw_python_requests *python;
	struct cw_process *table;
	struct cw_process *next_look; /* where the tick goes on; NULL = at the head */
	struct event *tick, *urgent;
	struct cw_digest_rounds rounds;
	struct cw_absent *absent;
	struct cw_untracked *untracked;
	int64_t digest_ns; /* last full round */
	struct cw_node_stats stats;
	struct cw_op_totals op_totals;
};

static inline int64_t cw_node_now(const struct cw_node *node)
{
	return cw_clock_now_ns(node->config.clock);
}

/* Reads a living process's record. */
void cw_node_sample(struct cw_node *node, struct cw_process *p);
