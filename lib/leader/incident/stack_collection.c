/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We send one request per node. While the request is open, the node captures two processes at a
 * time. When it ends, we ask the next node. So neither the network nor this daemon gets all stacks
 * at once.
 */
#include "leader/incident/stack_collection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "leader/incident/evidence_set.h"
#include "model/signature.h"
#include "proto/messages.h"
#include "report/stacks/stack_tree.h"

#define BEYOND_ALL "beyond the limit of 4096 in all"
#define BEYOND_NODE "beyond the limit of 64 on one node"
_Static_assert(CW_STACK_COLLECTION_MAX_PROCESSES == 4096 && CW_STACK_COLLECTION_MAX_PER_NODE == 64,
	       "as they say");

enum node_state { NODE_WAITS = 0, NODE_ASKED, NODE_DONE };

struct member {
	uint32_t node; /* index into nodes */
	int32_t pid, rank;
	uint64_t start_ticks;
	/* Equal for ranks in the same state. */
	uint64_t state;
	/* The rank represents its state. */
	bool is_close;
	/* The owner of `taken` requests the rank's stacks. */
	bool is_foreign;
	bool is_done;
};

struct node {
	char *name;
	uint32_t state; /* enum node_state */
};

struct cw_stack_collection {
	struct cw_stack_collection_config config;
	/* Sorted by node, representatives first. */
	struct member *members;
	uint32_t n_members;
	/* Nodes with representatives come first. */
	struct node *nodes;
	uint32_t n_nodes, n_asked, next_node;
	uint32_t answers;
	/* End of the whole collection; 0 = not started. */
	int64_t end_ns;
	struct cw_stack_tree *tree;
	json_t *close_docs;
};

struct cw_stack_collection *cw_stack_collection_free(struct cw_stack_collection *s)
{
	if (!s)
		return NULL;
	s->config.effects->cancel(s->config.effects->user, s);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		free(s->nodes[i].name);
	free(s->nodes);
	free(s->members);
	json_decref(s->close_docs);
	cw_stack_tree_free(s->tree);
	free(s);
	return NULL;
}

/* ---- the plan ---- */

/*
 * Hashes, for each rank, the calls in which it waits, without their comms. We then inspect one rank
 * of each state closely. If two states collide, we inspect only one of them. The harm is small,
 * because we collect the stacks of all ranks anyway.
 */
static void find_states(const struct cw_snapshot *snap, uint64_t *states)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &snap->ranks[i];

		states[i] = cw_hash_step(CW_HASH_INIT, r->liveness);
		states[i] = cw_hash_step(states[i], r->host_call.kind);
	}
	for (uint32_t c = 0; c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c];

		for (uint32_t m = 0; m < comm->nranks; m++) {
			const struct cw_op *op = comm->members[m].pending;
			uint32_t rank = comm->members[m].rank;

			if (!op || rank == CW_SNAP_NONE)
				continue;
			states[rank] = cw_hash_step(states[rank], op->kind);
			states[rank] = cw_hash_step(states[rank], op->coll_seq);
			states[rank] = cw_hash_step(states[rank], comm->nranks);
		}
	}
}

static bool is_taken(const struct cw_evidence_set *taken, const char *node,
		     const struct cw_snap_rank *r)
{
	for (unsigned i = 0; taken && i < taken->n_slots; i++) {
		const struct cw_evidence_slot *slot = &taken->slots[i];

		if (slot->pid == r->pid && slot->start_ticks == r->start_ticks &&
		    strcmp(slot->node, node) == 0)
			return true;
	}
	return false;
}

/* Marks the first rank of each state that no culprit, victim or earlier representative has. */
static void choose_representatives(struct cw_stack_collection *s)
{
	uint64_t known[CW_EVIDENCE_MAX_TARGETS + CW_STACK_COLLECTION_MAX_CLOSE];
	unsigned n = 0, n_close = 0;

	for (uint32_t i = 0; i < s->n_members; i++)
		if (s->members[i].is_foreign && n < CW_EVIDENCE_MAX_TARGETS)
			known[n++] = s->members[i].state;
	for (uint32_t i = 0; i < s->n_members && n_close < CW_STACK_COLLECTION_MAX_CLOSE; i++) {
		struct member *m = &s->members[i];
		bool is_known = m->is_foreign;

		for (unsigned k = 0; k < n && !is_known; k++)
			is_known = known[k] == m->state;
		if (is_known)
			continue;
		m->is_close = true;
		known[n++] = m->state;
		n_close++;
	}
}

static int by_importance(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->is_close != y->is_close)
		return x->is_close ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Renumbers the nodes. Nodes with a representative come first. */
static int order_nodes(struct cw_stack_collection *s)
{
	_cleanup_(freep) struct node *ordered = calloc(s->n_nodes + 1, sizeof(*ordered));
	_cleanup_(freep) uint32_t *numbers = calloc(s->n_nodes + 1, sizeof(*numbers));
	_cleanup_(freep) bool *is_close = calloc(s->n_nodes + 1, sizeof(*is_close));
	uint32_t n = 0;

	if (!ordered || !numbers || !is_close)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_members; i++)
		is_close[s->members[i].node] |= s->members[i].is_close;
	for (int pass = 1; pass >= 0; pass--) {
		for (uint32_t i = 0; i < s->n_nodes; i++) {
			if (is_close[i] != (pass == 1))
				continue;
			numbers[i] = n;
			ordered[n++] = s->nodes[i];
		}
	}
	for (uint32_t i = 0; i < s->n_members; i++)
		s->members[i].node = numbers[s->members[i].node];
	free(s->nodes);
	s->nodes = steal_ptr(&ordered);
	qsort(s->members, s->n_members, sizeof(*s->members), by_importance);
	return 0;
}

/* Records the ranks over the limits as omitted. */
static int keep_to_limits(struct cw_stack_collection *s)
{
	uint32_t kept = 0, on_node = 0, node = UINT32_MAX;
	int r = 0;

	for (uint32_t i = 0; i < s->n_members && r == 0; i++) {
		const struct member m = s->members[i];

		on_node = m.node == node ? on_node + 1 : 1;
		node = m.node;
		if (kept == CW_STACK_COLLECTION_MAX_PROCESSES)
			r = cw_stack_tree_not_collected(s->tree, m.rank, BEYOND_ALL);
		else if (on_node > CW_STACK_COLLECTION_MAX_PER_NODE && !m.is_foreign)
			r = cw_stack_tree_not_collected(s->tree, m.rank, BEYOND_NODE);
		else
			s->members[kept++] = m;
	}
	s->n_members = kept;
	return r;
}

static int plan(struct cw_stack_collection *s, const struct cw_snapshot *snap,
		const struct cw_evidence_set *taken)
{
	_cleanup_(freep) uint64_t *states = calloc(snap->n_ranks + 1, sizeof(*states));
	int r = 0;

	s->members = calloc(snap->n_ranks + 1, sizeof(*s->members));
	s->nodes = calloc(snap->n_nodes + 1, sizeof(*s->nodes));
	s->tree = cw_stack_tree_new();
	s->close_docs = json_array();
	if (!states || !s->members || !s->nodes || !s->tree || !s->close_docs)
		return -ENOMEM;
	for (uint32_t i = 0; i < snap->n_nodes; i++) {
		s->nodes[i].name = strdup(snap->nodes[i].name);
		s->n_nodes++;
		if (!s->nodes[i].name)
			return -ENOMEM;
	}
	find_states(snap, states);
	for (uint32_t i = 0; i < snap->n_ranks && r == 0; i++) {
		const struct cw_snap_rank *rank = &snap->ranks[i];

		if (s->config.has_rank && rank->rank != s->config.only_rank)
			continue;
		if (cw_liveness_is_dead(rank->liveness)) {
			r = cw_stack_tree_not_collected(s->tree, rank->rank, "it has ended");
			continue;
		}
		s->members[s->n_members++] = (struct member){
			.node = rank->node,
			.pid = rank->pid,
			.rank = rank->rank,
			.start_ticks = rank->start_ticks,
			.state = states[i],
			.is_foreign = is_taken(taken, snap->nodes[rank->node].name, rank),
		};
	}
	choose_representatives(s);
	if (r == 0)
		r = order_nodes(s);
	return r < 0 ? r : keep_to_limits(s);
}

int cw_stack_collection_new(const struct cw_stack_collection_config *config,
			    const struct cw_snapshot *snap, const struct cw_evidence_set *taken,
			    struct cw_stack_collection **ret)
{
	struct cw_stack_collection *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->config = *config;
	if (plan(s, snap, taken) < 0) {
		(void)cw_stack_collection_free(s); /* always NULL */
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

/* ---- answers ---- */

/* Stores the answer of one rank. If we are out of memory, the rank is missing. */
static void member_done(struct cw_stack_collection *s, struct member *m, const json_t *doc,
			const char *why)
{
	if (m->is_done)
		return;
	m->is_done = true;
	s->answers++;
	if (doc)
		(void)cw_stack_tree_add(s->tree, m->rank, doc);
	else
		(void)cw_stack_tree_not_collected(s->tree, m->rank, why);
}

/* Takes an answer. It applies to all ranks of the process. */
static void take(struct cw_stack_collection *s, const char *node, int32_t pid, uint64_t start_ticks,
		 const json_t *doc, bool is_foreign)
{
	bool is_kept = false;

	for (uint32_t i = 0; i < s->n_members; i++) {
		struct member *m = &s->members[i];

		if (m->pid != pid || m->start_ticks != start_ticks || m->is_foreign != is_foreign ||
		    m->is_done || strcmp(s->nodes[m->node].name, node) != 0)
			continue;
		if (doc && m->is_close && !is_kept)
			/* Out of memory: one document less. */
			(void)json_array_append(s->close_docs, (json_t *)doc);
		is_kept = is_kept || m->is_close;
		member_done(s, m, doc, "its node did not answer");
	}
}

void cw_stack_collection_take(struct cw_stack_collection *s, const struct cw_evidence_set *taken)
{
	for (unsigned i = 0; i < taken->n_slots; i++) {
		const struct cw_evidence_slot *slot = &taken->slots[i];

		if (!slot->is_awaited)
			take(s, slot->node, slot->pid, slot->start_ticks, slot->doc, true);
	}
}

static void node_done(struct cw_stack_collection *s, struct node *node, const char *why)
{
	for (uint32_t i = 0; i < s->n_members; i++) {
		struct member *m = &s->members[i];

		if (&s->nodes[m->node] == node && !m->is_foreign)
			member_done(s, m, NULL, why);
	}
	if (node->state == NODE_ASKED)
		s->n_asked--;
	node->state = NODE_DONE;
}

static void ask_more(struct cw_stack_collection *s);

static void on_reply(const char *name, const struct cw_message *reply, void *user)
{
	struct cw_stack_collection *s = user;
	const struct cw_msg_evidence_reply *e = reply ? &reply->evidence_reply : NULL;
	json_t *doc;

	if (e) {
		doc = cw_evidence_set_parse(e->json);
		take(s, name, e->pid, e->start_ticks, doc, false);
		json_decref(doc);
		if (e->remaining > 0)
			return;
	}
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (strcmp(s->nodes[i].name, name) == 0 && s->nodes[i].state == NODE_ASKED)
			node_done(s, &s->nodes[i], "its node did not answer in time");
	ask_more(s);
}

/* ---- requests ---- */

/*
 * True if the process is a target already. We request a process with several ranks once, with the
 * most detail that any of its ranks needs.
 */
static bool is_asked(struct cw_msg_evidence_target *targets, uint32_t n, const struct member *m)
{
	for (uint32_t i = 0; i < n; i++) {
		if (targets[i].pid != m->pid || targets[i].start_ticks != m->start_ticks)
			continue;
		if (m->is_close)
			targets[i].what &= ~CW_EVIDENCE_BRIEF;
		return true;
	}
	return false;
}

static int ask(struct cw_stack_collection *s, uint32_t node)
{
	struct cw_msg_evidence_target targets[CW_STACK_COLLECTION_MAX_PER_NODE];
	struct cw_message msg = { .type = CW_MSG_EVIDENCE_REQUEST };
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_members && n < CW_STACK_COLLECTION_MAX_PER_NODE; i++) {
		const struct member *m = &s->members[i];

		if (m->node != node || m->is_foreign || m->is_done || is_asked(targets, n, m))
			continue;
		targets[n++] = (struct cw_msg_evidence_target){
			.pid = m->pid,
			.start_ticks = m->start_ticks,
			.what = s->config.what | (m->is_close ? 0 : CW_EVIDENCE_BRIEF),
		};
	}
	if (n == 0)
		return -ENOENT;
	msg.evidence_request.job_hash = cw_job_id_hash(&s->config.job);
	msg.evidence_request.job_key = s->config.job.key;
	msg.evidence_request.uid = s->config.job.uid;
	msg.evidence_request.label = s->config.job.label;
	msg.evidence_request.deadline_ms = CW_STACK_COLLECTION_NODE_MS;
	msg.evidence_request.targets = targets;
	msg.evidence_request.n_targets = n;
	return s->config.effects->ask(s->config.effects->user, s->nodes[node].name, &msg,
				      CW_STACK_COLLECTION_NODE_MS + 250, on_reply, s);
}

static void ask_more(struct cw_stack_collection *s)
{
	while (s->next_node < s->n_nodes && s->n_asked < CW_STACK_COLLECTION_MAX_ASKED) {
		struct node *node = &s->nodes[s->next_node];
		int r;

		if (node->state == NODE_WAITS) {
			r = ask(s, s->next_node);
			if (r == -EAGAIN)
				/* Too many requests: the next tick tries again. */
				return;
			if (r < 0)
				node_done(s, node, "its node cannot be asked");
			else
				s->n_asked++;
			if (r == 0)
				node->state = NODE_ASKED;
		}
		s->next_node++;
	}
}

void cw_stack_collection_start(struct cw_stack_collection *s)
{
	if (s->end_ns)
		return;
	s->end_ns = cw_clock_awake_ns(s->config.clock) + CW_STACK_COLLECTION_NS;
	ask_more(s);
}

void cw_stack_collection_tick(struct cw_stack_collection *s)
{
	if (!s->end_ns || cw_stack_collection_is_complete(s))
		return;
	if (cw_clock_awake_ns(s->config.clock) >= s->end_ns)
		cw_stack_collection_stop(s, "no answer in time");
	else
		ask_more(s);
}

void cw_stack_collection_stop(struct cw_stack_collection *s, const char *why)
{
	s->config.effects->cancel(s->config.effects->user, s);
	s->next_node = s->n_nodes;
	s->n_asked = 0;
	for (uint32_t i = 0; i < s->n_members; i++)
		member_done(s, &s->members[i], NULL, why);
}

/* ---- results ---- */

bool cw_stack_collection_is_complete(const struct cw_stack_collection *s)
{
	return s->answers == s->n_members;
}

uint32_t cw_stack_collection_answers(const struct cw_stack_collection *s)
{
	return s->answers;
}

json_t *cw_stack_collection_doc(const struct cw_stack_collection *s)
{
	if (!s->answers && s->n_members)
		return NULL;
	return cw_stack_tree_doc(s->tree, s->n_members - s->answers);
}

int cw_stack_collection_add_evidence(const struct cw_stack_collection *s, json_t *evidence)
{
	return json_array_extend(evidence, s->close_docs) < 0 ? -ENOMEM : 0;
}
