/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "daemon/agents/agent_register.h"
#include "daemon/node/digest.h"
#include "daemon/node/node_private.h"
#include "daemon/node/window.h"
#include "identity/untracked.h"

int cw_node_windows(struct cw_node *node, const struct cw_job_id *job,
		    const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret)
{
	for (struct cw_process *p = node->table; p; p = p->hh.next)
		if (cw_process_is_of(p, job))
			cw_node_sample(node,
				       p); /* the newest ops, and comms made since the last tick */
	return cw_window_collect(node->table, job, request, cw_node_now(node), ret);
}

void cw_node_windows_fini(struct cw_msg_window_reply *reply)
{
	cw_window_fini(reply);
}

bool cw_node_search(struct cw_node *node, const struct cw_msg_rank_search *q)
{
	return cw_absent_search(node->absent, q);
}

static struct cw_node_process describe(const struct cw_node *node, const struct cw_process *p)
{
	const struct cw_rec_header *header = cw_record_header(p->record);

	return (struct cw_node_process){
		.pid = cw_process_pid(p),
		.start_ticks = p->key.start_ticks,
		.uid = p->uid,
		.gid = p->gid,
		.pidfd = p->pidfd,
		.rank = header->rank_label,
		.is_dead = cw_process_is_dead(p),
		.has_python = header->has & CW_REC_HAS_PYTHON,
		.idle_ns = p->headway.has_base ? cw_age_ns(cw_clock_awake_ns(node->config.clock),
							   p->headway.cpu_change_ns)
					       : -1,
	};
}

bool cw_node_find(struct cw_node *node, pid_t pid, uint64_t start_ticks,
		  struct cw_node_process *ret)
{
	const struct cw_process *p = cw_processes_find(node->table, pid, start_ticks);

	if (!p)
		return cw_absent_find(node->absent, pid, start_ticks, ret);
	*ret = describe(node, p);
	return true;
}

bool cw_node_is_of_another(const struct cw_node *node, pid_t pid, uint64_t start_ticks,
			   const struct cw_job_id *job)
{
	const struct cw_process *p = cw_processes_find(node->table, pid, start_ticks);

	if (!p)
		return cw_absent_is_of_another(node->absent, pid, start_ticks, job);
	return !cw_process_is_of(p, job);
}

void cw_node_each(struct cw_node *node, cw_node_process_fn fn, void *user)
{
	for (const struct cw_process *p = node->table; p; p = p->hh.next) {
		struct cw_node_process process = describe(node, p);

		fn(&process, p->label, user);
	}
}

void cw_node_each_ops(const struct cw_node *node, cw_node_ops_fn fn, void *user)
{
	for (const struct cw_process *p = node->table; p; p = p->hh.next) {
		struct cw_node_process process = describe(node, p);

		fn(&process, p->label, &p->ops, &p->fed, user);
	}
}

const struct cw_op_totals *cw_node_op_totals(const struct cw_node *node)
{
	return &node->op_totals;
}

int cw_node_python_stacks(struct cw_node *node, pid_t pid, uint64_t start_ticks,
			  uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			  uint64_t *ret_handle)
{
	struct cw_process *p = cw_processes_find(node->table, pid, start_ticks);

	if (!p || cw_process_is_dead(p))
		return -ENOENT;
	return cw_python_request(node->python, p, deadline_ms, fn, user, ret_handle);
}

void cw_node_python_cancel(struct cw_node *node, uint64_t handle)
{
	cw_python_cancel(node->python, handle);
}

const struct cw_untracked *cw_node_untracked(const struct cw_node *node)
{
	return node->untracked;
}

void cw_node_stats(const struct cw_node *node, struct cw_node_stats *ret)
{
	struct cw_agents_stats agents;

	*ret = node->stats;
	cw_agents_stats(node->agents, &agents);
	ret->digests_total = node->rounds.number;
	ret->registered_total = cw_registrar_total(node->registrar);
	ret->refused_total = agents.refused;
	ret->deferred_total = agents.deferred;
	ret->waiting = cw_registrar_waiting(node->registrar);
	ret->probes_repeated_total = cw_registrar_repeated(node->registrar);
	ret->unreadable_total = cw_registrar_unreadable(node->registrar);
	ret->bad_messages_total = agents.bad_messages;
	ret->untracked = cw_untracked_count(node->untracked);
	for (const struct cw_process *p = node->table; p; p = p->hh.next) {
		ret->processes++;
		ret->connected += p->conn != NULL;
		ret->dead += cw_process_is_dead(p);
	}
}
