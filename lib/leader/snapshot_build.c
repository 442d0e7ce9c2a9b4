/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We build a snapshot in this order, because each step needs the one before:
 *
 *  1. the ranks;
 *  2. the limit on places, which grows with the number of reported memberships. A place is the room
 *     for one member of a communicator;
 *  3. the members, living ranks before dead ones. If a living and a dead rank claim the same place,
 *     the dead one is from an earlier attempt;
 *  4. the job's identity, and notes about omissions.
 *
 * For each kind of object, one function copies it and converts its ages to instants.
 */
#include "leader/snapshot_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "proto/ages.h"

struct builder {
	const struct cw_build *in;
	struct cw_snapshot *snap;
	/* Per node of the digests: index in the snapshot + 1; 0 = not added yet. */
	uint32_t *node_index;
	uint64_t places; /* number of places in the communicators added so far */
	uint64_t places_max;
	uint32_t over_limit; /* number of communicators over a limit */
	uint32_t doubles;    /* number of members that claim a place that another member has */
	uint32_t n_connections;
	/* Connections of one member; NULL = not allocated yet. */
	struct cw_snap_connection *connections;
};

static void free_snapshot(struct cw_snapshot **snap)
{
	cw_snapshot_free(*snap);
}

static enum cw_policy policy_of(const char *name)
{
	if (!strcmp(name, "serving"))
		return CW_POLICY_SERVING;
	if (!strcmp(name, "off"))
		return CW_POLICY_OFF;
	return CW_POLICY_TRAINING;
}

#define POLICY_NONE (CW_POLICY_OFF + 1u)

/*
 * Considers the nodes that have ranks with these flags. Returns the policy of these nodes with the
 * most alerts. POLICY_NONE = no node has a policy.
 */
static unsigned least_policy(const struct cw_build *in, uint32_t flags)
{
	unsigned least = POLICY_NONE;

	for (unsigned i = 0; i < in->n_refs; i++) {
		const struct cw_job_digests_node *n = &in->digests->nodes[in->refs[i].node];
		unsigned p = policy_of(n->digest->digest.policy);

		if ((cw_job_digests_rank(in->digests, &in->refs[i])->flags & flags) == flags &&
		    p < least)
			least = p;
	}
	return least;
}

static int add_node(struct builder *b, uint32_t node, uint32_t *ret_index)
{
	const struct cw_job_digests_node *n = &b->in->digests->nodes[node];
	int r;

	if (b->node_index[node]) {
		*ret_index = b->node_index[node] - 1;
		return 0;
	}
	r = cw_snapshot_add_node(b->snap, n->name, ret_index);
	if (r < 0)
		return r;
	b->node_index[node] = *ret_index + 1;
	b->snap->nodes[*ret_index].state = n->state;
	b->snap->nodes[*ret_index].last_digest_ns = n->received_ns;
	return 0;
}

/*
 * Returns the rank number that the user knows: the label. Without a label, it is the rank in the
 * largest communicator.
 */
static int32_t label_of(const struct cw_msg_rank *rank)
{
	uint32_t largest = 0;
	int32_t label = rank->rank;

	if (label >= 0)
		return label;
	for (uint32_t i = 0; i < rank->n_members; i++) {
		if (rank->members[i].nranks > largest && rank->members[i].comm_rank >= 0) {
			largest = rank->members[i].nranks;
			label = rank->members[i].comm_rank;
		}
	}
	return label;
}

static int add_rank(struct builder *b, const struct cw_rank_ref *ref)
{
	const struct cw_msg_rank *from = cw_job_digests_rank(b->in->digests, ref);
	int64_t at_ns = b->in->digests->nodes[ref->node].received_ns;
	struct cw_snap_rank rank = { .rank_facts = from->rank_facts,
				     .cause_facts = from->cause_facts },
			    *to = &rank;
	uint32_t index;
	int r;

	CW_RANK_FACTS(CW_FROM_AGES)
	CW_CAUSE_FACTS(CW_FROM_AGES)
	rank.rank = label_of(from);
	if (from->host_call)
		rank.host_call = cw_ages_to_op(from->host_call, at_ns);
	r = add_node(b, ref->node, &rank.node);
	return r < 0 ? r : cw_snapshot_add_rank(b->snap, &rank, &index);
}

/*
 * Finds or adds a communicator. We omit a communicator over a limit, and *ret_index is then
 * CW_SNAP_NONE.
 */
static int find_or_add_comm(struct builder *b, const struct cw_msg_member *member,
			    uint32_t *ret_index)
{
	struct cw_snap_comm comm = {
		.comm_facts = member->comm_facts,
		.id = member->comm_id,
		.nranks = member->nranks,
		.name = member->name[0] ? member->name : NULL,
	};

	*ret_index = cw_snapshot_find_comm(b->snap, member->comm_id, member->instance);
	if (*ret_index != CW_SNAP_NONE && member->nranks <= b->snap->comms[*ret_index].nranks)
		return 0;
	if (member->nranks == 0 || member->nranks > CW_BUILD_MAX_NRANKS ||
	    b->places + member->nranks > b->places_max) {
		b->over_limit++;
		return 0;
	}
	b->places += member->nranks;
	/* Members may report different sizes, so we make a place for each claimed rank. */
	if (*ret_index != CW_SNAP_NONE)
		return cw_snapshot_grow_comm(b->snap, *ret_index, member->nranks);
	return cw_snapshot_add_comm_raw(b->snap, &comm, ret_index);
}

/* Copies the member's facts. Borrows the p2p counters and last hashes. */
static void copy_facts(struct cw_snap_member *to, const struct cw_msg_member *from, int64_t at_ns)
{
	uint32_t n = from->n_checkpoints < CW_SNAP_CHECKPOINTS ? from->n_checkpoints
							       : CW_SNAP_CHECKPOINTS;

	to->member_facts = from->member_facts;
	CW_MEMBER_FACTS(CW_FROM_AGES)
	if (n)
		memcpy(to->checkpoints, from->checkpoints, n * sizeof(*to->checkpoints));
	to->last_hashes = from->n_last_hashes ? from->last_hashes : NULL;
	to->n_last_hashes = from->n_last_hashes;
	to->p2p = from->n_p2p ? from->p2p : NULL;
	to->n_p2p = from->n_p2p;
}

/* Joins both windows, the oldest op first. An op that is in both windows appears once. */
static int attach_joined(struct builder *b, uint32_t comm, uint32_t comm_rank,
			 const struct cw_job_window *past, const struct cw_job_window *last)
{
	_cleanup_(freep) struct cw_op *ops =
		calloc((size_t)past->n_ops + last->n_ops + 1, sizeof(*ops));
	uint64_t from = last->n_ops ? last->ops[0].op_index : UINT64_MAX;
	uint32_t n = 0;

	if (!ops)
		return -ENOMEM;
	while (n < past->n_ops && past->ops[n].op_index < from) {
		ops[n] = past->ops[n];
		n++;
	}
	if (last->n_ops)
		memcpy(&ops[n], last->ops, last->n_ops * sizeof(*ops));
	return cw_snapshot_set_window(b->snap, comm, comm_rank, ops, n + last->n_ops,
				      n ? past->lost : last->lost, last->read_ns);
}

static int attach_windows(struct builder *b, const struct cw_rank_ref *ref,
			  const struct cw_msg_member *member, uint32_t comm)
{
	const char *node = b->in->digests->nodes[ref->node].name;
	const struct cw_msg_rank *rank = cw_job_digests_rank(b->in->digests, ref);
	const struct cw_job_window *past, *last;

	past = cw_job_window(b->in->job, node, rank, member, CW_WINDOW_PAST, b->in->now_ns);
	last = cw_job_window(b->in->job, node, rank, member, CW_WINDOW_LAST, b->in->now_ns);
	if (past && last)
		return attach_joined(b, comm, (uint32_t)member->comm_rank, past, last);
	if (past)
		last = past;
	return last ? cw_snapshot_set_window(b->snap, comm, (uint32_t)member->comm_rank, last->ops,
					     last->n_ops, last->lost, last->read_ns)
		    : 0;
}

static int copy_ops(struct builder *b, uint32_t comm, struct cw_snap_member *to,
		    const struct cw_msg_member *member, int64_t at_ns)
{
	struct cw_op op;
	int r = 0;

	if (member->pending) {
		op = cw_ages_to_op(member->pending, at_ns);
		r = cw_snapshot_copy_pending(b->snap, to, &op);
	}
	if (member->last && r >= 0) {
		op = cw_ages_to_op(member->last, at_ns);
		r = cw_snapshot_copy_last(b->snap, comm, (uint32_t)member->comm_rank, &op);
	}
	return r;
}

/*
 * Converts the member's connections. *to borrows them until the next call. If the job has too many,
 * the rank's counter of lost connections counts those that we omit.
 */
static int copy_connections(struct builder *b, struct cw_snap_member *member,
			    const struct cw_msg_member *msg, int64_t at_ns)
{
	uint32_t n = msg->n_connections;

	if (!n)
		return 0;
	if (n > CW_SNAP_MAX_CONNECTIONS || n > CW_BUILD_MAX_CONNECTIONS - b->n_connections) {
		b->snap->ranks[member->rank].connections_lost += n;
		return 0;
	}
	if (!b->connections)
		b->connections = calloc(CW_SNAP_MAX_CONNECTIONS, sizeof(*b->connections));
	if (!b->connections)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct cw_msg_connection *from = &msg->connections[i];
		struct cw_snap_connection *to = &b->connections[i];

		to->connection_facts = from->connection_facts;
		CW_CONNECTION_FACTS(CW_FROM_AGES)
	}
	b->n_connections += n;
	member->connections = b->connections;
	member->n_connections = n;
	return 0;
}

static int add_member(struct builder *b, const struct cw_rank_ref *ref, uint32_t rank_index,
		      const struct cw_msg_member *from)
{
	const struct cw_job_digests_node *node = &b->in->digests->nodes[ref->node];
	struct cw_snap_member *member;
	uint32_t comm;
	int r;

	r = find_or_add_comm(b, from, &comm);
	if (r < 0 || comm == CW_SNAP_NONE)
		return r;
	/* We skip a rank that is still inside the init call, because it has no place yet. */
	if (from->comm_rank < 0 || (uint32_t)from->comm_rank >= b->snap->comms[comm].nranks)
		return 0;
	r = cw_snapshot_claim_member(b->snap, comm, (uint32_t)from->comm_rank, rank_index, &member);
	if (r == -EINVAL) {
		b->doubles++;
		return 0;
	}
	if (r < 0)
		return r;
	copy_facts(member, from, node->received_ns);
	r = copy_ops(b, comm, member, from, node->received_ns);
	if (r >= 0)
		r = copy_connections(b, member, from, node->received_ns);
	if (r >= 0)
		r = cw_snapshot_own_member(b->snap, member);
	if (r < 0 || !b->in->job || !b->in->job->windows)
		return r;
	return attach_windows(b, ref, from, comm);
}

/*
 * Adds the members of living ranks, or of dead ranks. The caller adds those of living ranks first.
 * If a living and a dead rank claim the same place, the dead one is from an earlier attempt.
 */
static int add_members(struct builder *b, bool dead)
{
	int r = 0;

	for (unsigned i = 0; i < b->in->n_refs; i++) {
		const struct cw_msg_rank *rank =
			cw_job_digests_rank(b->in->digests, &b->in->refs[i]);

		if (cw_liveness_is_dead(rank->liveness) != dead)
			continue;
		for (uint32_t k = 0; k < rank->n_members && r >= 0; k++)
			r = add_member(b, &b->in->refs[i], i, &rank->members[k]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int set_identity(struct builder *b)
{
	const struct cw_msg_rank *first = cw_job_digests_rank(b->in->digests, &b->in->refs[0]);
	const char *group = first->rank >= 0 ? first->rank_source : "comm rank";
	uint32_t expected = 0, largest = 0;

	for (unsigned i = 0; i < b->in->n_refs; i++) {
		const struct cw_msg_rank *rank =
			cw_job_digests_rank(b->in->digests, &b->in->refs[i]);

		if (rank->rank >= 0 && rank->world_size > 0 &&
		    (uint32_t)rank->world_size > expected)
			expected = (uint32_t)rank->world_size;
	}
	for (uint32_t i = 0; i < b->snap->n_comms; i++)
		if (b->snap->comms[i].nranks > largest)
			largest = b->snap->comms[i].nranks;
	b->snap->ranks_expected = expected ? expected : largest;
	return cw_snapshot_set_job(b->snap, b->in->digests->label, group);
}

static bool has_reported(const struct cw_job_digests *digests, const char *node)
{
	for (unsigned i = 0; i < digests->n_nodes; i++)
		if (!strcmp(digests->nodes[i].name, node))
			return true;
	return false;
}

/*
 * If ranks are missing, adds a note about unreachable daemons, because these are the likely reason.
 */
static int note_unseen(struct builder *b)
{
	const struct cw_peer *peers = b->in->peers;
	const char *first = NULL;
	unsigned n = 0;
	char text[160];

	if (b->snap->n_ranks >= b->snap->ranks_expected)
		return 0;
	for (unsigned i = 0; i < b->in->n_peers; i++) {
		if (cw_peer_is_alive(&peers[i], b->in->awake_ns) ||
		    has_reported(b->in->digests, peers[i].name))
			continue;
		if (n++ == 0)
			first = peers[i].name;
	}
	if (n == 0)
		return 0;
	(void)snprintf(text, sizeof(text), "no daemon answers on %.64s%s: ranks there are not seen",
		       first, n > 1 ? " and other nodes" : "");
	return cw_snapshot_add_note(b->snap, text);
}

/* Adds a note about ranks whose node is over its limit and so does not read their records. */
static int note_untracked(struct builder *b)
{
	const struct cw_job_digests *digests = b->in->digests;
	char text[192];
	int r = 0;

	for (unsigned i = 0; i < digests->n_nodes && r >= 0; i++) {
		uint32_t n = digests->nodes[i].digest->digest.untracked;

		if (!n)
			continue;
		(void)snprintf(text, sizeof(text),
			       "%u rank process%s of this job on %.64s %s not visible: that node "
			       "watches the maximum number of processes",
			       n, n == 1 ? "" : "es", digests->nodes[i].name,
			       n == 1 ? "is" : "are");
		r = cw_snapshot_add_note(b->snap, text);
	}
	return r;
}

static bool is_by_profiler(const struct cw_msg_rank *rank)
{
	for (uint32_t i = 0; i < rank->n_members; i++)
		if (rank->members[i].by_profiler)
			return true;
	return false;
}

/*
 * Adds a note about ranks that use the profiler interface. For these we cannot detect a wrong
 * operator, or the device progress of a call.
 */
static int note_profiler(struct builder *b)
{
	unsigned n = 0;
	char text[160];

	for (unsigned i = 0; i < b->in->n_refs; i++)
		n += is_by_profiler(cw_job_digests_rank(b->in->digests, &b->in->refs[i]));
	if (n == 0)
		return 0;
	(void)snprintf(text, sizeof(text),
		       "the calls of %u rank%s are known from NCCL's profiler only, without "
		       "operators and device progress",
		       n, n == 1 ? "" : "s");
	return cw_snapshot_add_note(b->snap, text);
}

/*
 * Adds a note about connections that the snapshot lacks. Without them we may not see the one at
 * fault.
 */
static int note_connections(struct builder *b)
{
	uint64_t n = 0;
	unsigned n_ranks = 0;
	char text[160];

	for (uint32_t i = 0; i < b->snap->n_ranks; i++) {
		n += b->snap->ranks[i].connections_lost;
		n_ranks += b->snap->ranks[i].connections_lost > 0;
	}
	if (n == 0)
		return 0;
	(void)snprintf(text, sizeof(text),
		       "%llu part%s of ops on network connections of %u rank%s %s not visible: all "
		       "places for them were taken",
		       (unsigned long long)n, n == 1 ? "" : "s", n_ranks, n_ranks == 1 ? "" : "s",
		       n == 1 ? "is" : "are");
	return cw_snapshot_add_note(b->snap, text);
}

static int add_notes(struct builder *b)
{
	char text[160];
	int r = 0;

	if (b->in->sees_only_itself)
		r = cw_snapshot_add_note(b->snap, b->in->finds_peers
							  ? "no peer has been found yet: only the "
							    "ranks of this node are visible"
							  : "no peers are configured: only the "
							    "ranks of this node are visible");
	if (r >= 0)
		r = note_unseen(b);
	if (r >= 0)
		r = note_untracked(b);
	if (r >= 0)
		r = note_profiler(b);
	if (r >= 0)
		r = note_connections(b);
	for (uint32_t i = 0; i < b->snap->n_nodes && r >= 0; i++) {
		if (b->snap->nodes[i].state == CW_NODE_REPORTING)
			continue;
		(void)snprintf(text, sizeof(text), "%s does not report: last heard %lld s ago",
			       b->snap->nodes[i].name,
			       (long long)((b->in->now_ns - b->snap->nodes[i].last_digest_ns) /
					   CW_NS_PER_S));
		r = cw_snapshot_add_note(b->snap, text);
	}
	if (b->over_limit && r >= 0) {
		(void)snprintf(text, sizeof(text), "%u communicator%s beyond a limit: omitted",
			       b->over_limit, b->over_limit == 1 ? " is" : "s are");
		r = cw_snapshot_add_note(b->snap, text);
	}
	if (b->doubles && r >= 0) {
		(void)snprintf(text, sizeof(text),
			       "%u process%s a communicator's rank that another one has",
			       b->doubles, b->doubles == 1 ? " claims" : "es claim");
		r = cw_snapshot_add_note(b->snap, text);
	}
	return r;
}

static int fill(struct builder *b)
{
	const struct cw_text_set *stacks = b->in->job ? &b->in->job->stacks : NULL;
	uint32_t number;
	int r = 0;

	/* The call stacks keep their numbers. */
	for (uint32_t i = 0; stacks && i < stacks->n && r >= 0; i++)
		r = cw_snapshot_add_stack(b->snap, stacks->texts[i], &number);
	for (unsigned i = 0; i < b->in->n_refs && r >= 0; i++)
		r = add_rank(b, &b->in->refs[i]);
	/*
	 * A communicator costs memory for each rank of its claimed size. So the limit on places
	 * grows with the number of reported memberships. The factor is a thousand: a leader that
	 * sees one node of a job of 16,384 ranks needs that much.
	 */
	b->places_max = b->in->places_free;
	for (unsigned i = 0; i < b->in->n_refs; i++)
		b->places_max +=
			1024u *
			(uint64_t)cw_job_digests_rank(b->in->digests, &b->in->refs[i])->n_members;
	if (b->places_max > CW_BUILD_MAX_PLACES)
		b->places_max = CW_BUILD_MAX_PLACES;
	if (r >= 0)
		r = add_members(b, false);
	if (r >= 0)
		r = add_members(b, true);
	cw_snapshot_clear_unclaimed(b->snap);
	if (r >= 0)
		r = set_identity(b); /* comes last, because it needs the communicators */
	return r < 0 ? r : add_notes(b);
}

int cw_snapshot_build(const struct cw_build *in, struct cw_snapshot **ret)
{
	_cleanup_(free_snapshot) struct cw_snapshot *snap =
		in->spare && *in->spare ? steal_ptr(in->spare) : cw_snapshot_new();
	_cleanup_(freep) uint32_t *node_index = calloc(in->digests->n_nodes + 1, sizeof(uint32_t));
	struct builder b = { .in = in, .snap = snap, .node_index = node_index };
	int r;

	if (!snap || !node_index)
		return -ENOMEM;
	snap->now_ns = in->now_ns;
	snap->wall_ns = in->wall_ns;
	snap->held_ns = in->held_ns;
	snap->thresholds = in->thresholds;
	snap->untracked = (uint32_t)cw_job_digests_untracked(in->digests);
	/*
	 * We take the policy with the most alerts. So a single node under a chosen name cannot
	 * silence a job or make us more patient. A node whose ranks have no record does not know
	 * their policy variable. So we prefer nodes with records.
	 */
	snap->policy = least_policy(in, CW_RANKF_HAS_RECORD);
	if (snap->policy == POLICY_NONE)
		snap->policy = least_policy(in, 0);
	r = fill(&b);
	free(b.connections);
	if (in->over_limit)
		*in->over_limit += b.over_limit;
	if (r < 0)
		return r;
	*ret = steal_ptr(&snap);
	return 0;
}
