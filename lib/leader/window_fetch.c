/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window costs the nodes reads of records, and costs the leader memory. So we request only
 * communicators that the verdict wants, and only from nodes with members of these communicators. We
 * send no request while a reply is outstanding.
 */
#include "leader/window_fetch.h"

#include <string.h>

static void take_windows(struct cw_job *job, const char *node, const struct cw_message *reply,
			 enum cw_window_kind kind)
{
	if (job->windows_awaited)
		job->windows_awaited--;
	if (!reply)
		return;
	/*
	 * We count ages from the request. The node read the records at some time between request
	 * and reply, and an op must not look younger than it is. If we are out of memory, we decide
	 * without the windows.
	 */
	if (cw_job_window_add(job, node, &reply->window_reply, kind, job->windows_asked_ns) < 0)
		leader_log(job->incidents.config.effects, CW_LOG_WARN,
			   "out of memory for windows of %s, ignoring", node);
	job->is_due = true;
}

static void on_last_windows(const char *node, const struct cw_message *reply, void *user)
{
	take_windows(user, node, reply, CW_WINDOW_LAST);
}

static void on_past_windows(const char *node, const struct cw_message *reply, void *user)
{
	take_windows(user, node, reply, CW_WINDOW_PAST);
}

static bool has_member_of(const struct cw_job_digests_node *node, const uint64_t *ids, uint32_t n)
{
	const struct cw_msg_digest *digest = &node->digest->digest;

	for (uint32_t i = 0; i < digest->n_ranks; i++)
		for (uint32_t m = 0; m < digest->ranks[i].n_members; m++)
			for (uint32_t c = 0; c < n; c++)
				if (digest->ranks[i].members[m].comm_id == ids[c])
					return true;
	return false;
}

static unsigned query_peers(const struct cw_leader_effects *effects,
			    const struct cw_job_digests *digests, struct cw_job *job,
			    struct cw_msg_window_request *request, cw_leader_answer_fn on_reply)
{
	struct cw_message msg = { .type = CW_MSG_WINDOW_REQUEST };
	unsigned n_asked = 0;

	request->job_key = digests->job.key;
	request->uid = digests->uid;
	request->label = digests->label;
	msg.window_request = *request;
	for (unsigned i = 0; i < digests->n_nodes; i++) {
		const struct cw_job_digests_node *node = &digests->nodes[i];

		if (node->state != CW_NODE_REPORTING ||
		    !has_member_of(node, request->comm_ids, request->n_comm_ids))
			continue;
		/* The node's own name for the job. */
		msg.window_request.job_hash = node->digest->digest.job_hash;
		if (effects->ask(effects->user, node->name, &msg, CW_WINDOW_FETCH_MS, on_reply,
				 job) == 0) {
			job->windows_awaited++;
			n_asked++;
		}
	}
	return n_asked;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns the largest number of members that the communicator has on any node. */
static uint32_t most_on_a_node(const struct cw_job_digests *digests, uint64_t id)
{
	uint32_t most = 1;

	for (unsigned i = 0; i < digests->n_nodes; i++) {
		const struct cw_msg_digest *digest = &digests->nodes[i].digest->digest;
		uint32_t n = 0;

		for (uint32_t r = 0; r < digest->n_ranks; r++)
			for (uint32_t m = 0; m < digest->ranks[r].n_members; m++)
				n += digest->ranks[r].members[m].comm_id == id;
		if (n > most)
			most = n;
	}
	return most;
}

static unsigned ask_for_past(const struct cw_leader_effects *effects,
			     const struct cw_job_digests *digests, struct cw_job *job,
			     const struct cw_snap_comm *comm, int64_t now)
{
	/* The size of a reply and the job's memory limit the number of calls. */
	uint32_t max_calls = min_u32(CW_MSG_MAX_REPLY_OPS / most_on_a_node(digests, comm->id),
				     CW_JOB_MAX_PAST_OPS / (comm->nranks ? comm->nranks : 1));
	struct cw_msg_window_request request = { .n_comm_ids = 1 };
	struct cw_history_range range;

	max_calls = max_calls ? min_u32(max_calls, CW_WINDOW_FETCH_PAST_OPS) : 1;
	if (!cw_history_should_ask(&job->history, comm, max_calls, now, &range))
		return 0;
	request.comm_ids = &range.comm_id;
	request.max_ops = max_calls;
	request.from_seq = range.from_seq;
	request.to_seq = range.to_seq;
	return query_peers(effects, digests, job, &request, on_past_windows);
}

/* True if a rank waits in the communicator now. Otherwise we only need calls of the past. */
static bool is_waited_on(const struct cw_verdict *verdict, uint32_t comm)
{
	if (!verdict->waiting_since_ns)
		return false;
	for (uint32_t i = 0; i < verdict->n_chain; i++)
		if (verdict->chain[i].comm == comm)
			return true;
	return verdict->comm == comm;
}

static bool may_ask(const struct cw_job *job, int64_t now)
{
	return !job->windows_awaited &&
	       (!job->windows_asked_ns || now - job->windows_asked_ns >= CW_WINDOW_FETCH_EVERY_NS);
}

static uint32_t ops_of(const struct cw_snapshot *snap)
{
	return snap->n_ranks <= 64 ? CW_WINDOW_FETCH_OPS_SMALL : CW_WINDOW_FETCH_OPS;
}

unsigned cw_window_fetch(const struct cw_leader_effects *effects,
			 const struct cw_job_digests *digests, struct cw_job *job,
			 const struct cw_snapshot *snap, const struct cw_verdict *verdict)
{
	int64_t now = snap->now_ns;
	uint64_t ids[CW_WINDOW_FETCH_MAX_COMMS];
	struct cw_msg_window_request request = {
		.comm_ids = ids,
		.max_ops = ops_of(snap),
	};
	unsigned n_asked = 0;

	if (!may_ask(job, now))
		return 0;
	for (uint32_t i = 0; i < verdict->n_wanted && i < CW_WINDOW_FETCH_MAX_COMMS; i++) {
		const struct cw_snap_comm *comm = &snap->comms[verdict->wanted[i]];

		job->windows_asked_ns = now;
		n_asked += ask_for_past(effects, digests, job, comm, now);
		if (!comm->differ_seq || is_waited_on(verdict, verdict->wanted[i]))
			ids[request.n_comm_ids++] = comm->id;
	}
	if (request.n_comm_ids)
		n_asked += query_peers(effects, digests, job, &request, on_last_windows);
	return n_asked;
}

/*
 * True if the ops of all communicators fit the limit. The late rank may itself have waited in any
 * communicator, so we fetch the windows of all communicators or of none.
 */
static bool are_few_enough(const struct cw_job_digests *digests, const struct cw_snapshot *snap,
			   uint32_t max_ops)
{
	uint64_t n_ops = 0;

	if (snap->n_comms > CW_WINDOW_FETCH_MAX_COMMS)
		return false;
	for (uint32_t i = 0; i < snap->n_comms; i++)
		n_ops += (uint64_t)snap->comms[i].nranks * max_ops;
	for (unsigned i = 0; i < digests->n_nodes; i++) {
		const struct cw_msg_digest *digest = &digests->nodes[i].digest->digest;
		uint64_t n = 0;

		for (uint32_t r = 0; r < digest->n_ranks; r++)
			n += digest->ranks[r].n_members;
		if (n * CW_WINDOW_FETCH_OPS > CW_MSG_MAX_REPLY_OPS)
			return false;
	}
	return n_ops <= CW_JOB_MAX_WINDOW_OPS - CW_JOB_MAX_PAST_OPS;
}

unsigned cw_window_fetch_all(const struct cw_leader_effects *effects,
			     const struct cw_job_digests *digests, struct cw_job *job,
			     const struct cw_snapshot *snap)
{
	uint64_t ids[CW_WINDOW_FETCH_MAX_COMMS];
	struct cw_msg_window_request request = { .comm_ids = ids, .max_ops = ops_of(snap) };

	if (!may_ask(job, snap->now_ns) || !are_few_enough(digests, snap, request.max_ops))
		return 0;
	for (uint32_t i = 0; i < snap->n_comms; i++)
		ids[request.n_comm_ids++] = snap->comms[i].id;
	if (!request.n_comm_ids)
		return 0;
	job->windows_asked_ns = snap->now_ns;
	return query_peers(effects, digests, job, &request, on_last_windows);
}
