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

#include "analysis/stacks/different.h"
#include "analysis/stacks/peers.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "leader/incident/evidence_set.h"
#include "model/signature.h"
#include "model/verdict_types.h"
#include "proto/messages.h"
#include "report/json_util.h"
#include "report/stacks/stack_nodes.h"
#include "report/stacks/stack_signature.h"
#include "report/stacks/stack_tree.h"

#define BEYOND_ALL "beyond the limit of 4096 in all"
#define BEYOND_NODE "beyond the limit of 64 on one node"
_Static_assert(CW_STACK_COLLECTION_MAX_PROCESSES == 4096 && CW_STACK_COLLECTION_MAX_PER_NODE == 64,
	       "as they say");

/* Progress within this time, plus twice the usual time between calls, means that a job moves. */
#define PROGRESS_NS (5 * CW_NS_PER_S)
/* Ages differ if they differ in this unit. */
#define AGE_STEP_NS (CW_NS_PER_S / 10)
/* At most this many ranks that differ have a place in the document. */
#define MAX_DIFFERENT 64u

enum node_state { NODE_WAITS = 0, NODE_ASKED, NODE_DONE };

struct member {
	uint32_t node; /* index into nodes */
	int32_t pid, rank;
	uint64_t start_ticks;
	/* The rank's state as a number; ranks with equal numbers are in the same state. */
	uint64_t state;
	uint32_t index; /* index of the rank in the snapshot */
	uint32_t peers; /* the rank's group of peers (analysis/stacks/peers.h) */
	uint32_t host;  /* enum cw_stack_host */
	struct cw_stack_signature *signatures;
	uint32_t n_signatures;
	int64_t taken_ns; /* when the rank's stacks were taken; 0 = we have no stacks */
	/* True if this rank represents all ranks in its state. */
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
	bool moves; /* the job made progress when we planned the requests */
};

struct cw_stack_collection *cw_stack_collection_free(struct cw_stack_collection *s)
{
	if (!s)
		return NULL;
	s->config.effects->cancel(s->config.effects->user, s);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		free(s->nodes[i].name);
	free(s->nodes);
	for (uint32_t i = 0; i < s->n_members; i++)
		free(s->members[i].signatures);
	free(s->members);
	json_decref(s->close_docs);
	cw_stack_tree_free(s->tree);
	free(s);
	return NULL;
}

/* ---- the plan ---- */

/*
 * Hashes, for each rank, the calls that it waits in, without their comms. We then inspect one rank
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

/*
 * True if a member of a communicator made progress a short time ago, in relation to its usual time
 * between calls.
 */
static bool makes_progress(const struct cw_snapshot *snap)
{
	for (uint32_t c = 0; c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c];

		for (uint32_t i = 0; i < comm->nranks; i++) {
			const struct cw_snap_member *m = &comm->members[i];
			int64_t age = snap->now_ns - m->progress_ns;

			if (m->rank != CW_SNAP_NONE && m->progress_ns &&
			    age < PROGRESS_NS + 2 * m->interval_ns)
				return true;
		}
	}
	return snap->n_comms == 0; /* not known */
}

static uint32_t host_of(const struct cw_snapshot *snap, const struct cw_snap_rank *rank)
{
	if (rank->liveness == CW_LIVE_STOPPED || rank->liveness == CW_LIVE_TRACED)
		return CW_STACK_HOST_IDLE;
	if (!rank->host_activity_ns)
		return CW_STACK_HOST_UNKNOWN;
	return snap->now_ns - rank->host_activity_ns >= CW_STACKS_IDLE_NS ? CW_STACK_HOST_IDLE
									  : CW_STACK_HOST_BUSY;
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
	_cleanup_(freep) uint32_t *peers = calloc(snap->n_ranks + 1, sizeof(*peers));
	int r = 0;

	s->members = calloc(snap->n_ranks + 1, sizeof(*s->members));
	s->nodes = calloc(snap->n_nodes + 1, sizeof(*s->nodes));
	s->tree = cw_stack_tree_new(s->config.what & CW_EVIDENCE_ALL_PYTHON);
	s->close_docs = json_array();
	if (!states || !peers || !s->members || !s->nodes || !s->tree || !s->close_docs)
		return -ENOMEM;
	for (uint32_t i = 0; i < snap->n_nodes; i++) {
		s->nodes[i].name = strdup(snap->nodes[i].name);
		s->n_nodes++;
		if (!s->nodes[i].name)
			return -ENOMEM;
	}
	find_states(snap, states);
	s->moves = makes_progress(snap);
	r = cw_peers_find(snap, peers);
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
			.index = i,
			.peers = peers[i],
			.host = host_of(snap, rank),
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

/* If we are out of memory, we do not compare this rank's stacks. */
static void read_signatures(struct member *m, const json_t *doc)
{
	struct cw_stack_signature list[CW_STACK_SIGNATURES_MAX];
	size_t n = cw_stack_signatures_read(doc, list);

	m->signatures = n ? calloc(n, sizeof(*list)) : NULL;
	if (!m->signatures)
		return;
	memcpy(m->signatures, list, n * sizeof(*list));
	m->n_signatures = (uint32_t)n;
}

/* Stores the answer of one rank. If we are out of memory, the rank is missing. */
static void member_done(struct cw_stack_collection *s, struct member *m, const json_t *doc,
			const char *why)
{
	if (m->is_done)
		return;
	m->is_done = true;
	s->answers++;
	if (doc) {
		m->taken_ns = cw_clock_awake_ns(s->config.clock) -
			      (int64_t)(json_number_value(json_object_get(doc, "age_s")) *
					(double)CW_NS_PER_S);
		read_signatures(m, doc);
		(void)cw_stack_tree_add(s->tree, m->rank, doc);
	} else {
		(void)cw_stack_tree_not_collected(s->tree, m->rank, why);
	}
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

/* Signatures of all ranks, and the sample of each for the comparison. */
struct compared {
	const struct cw_stack_signature **signatures;
	int32_t *ranks; /* numbers of the ranks */
	struct cw_stack_sample *samples;
	size_t n;
};

static void compared_fini(struct compared *c)
{
	free(c->signatures);
	free(c->ranks);
	free(c->samples);
}

static int collect_samples(const struct cw_stack_collection *s, struct compared *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < s->n_members; i++)
		n += s->members[i].n_signatures;
	ret->signatures = calloc(n + 1, sizeof(struct cw_stack_signature *));
	ret->ranks = calloc(n + 1, sizeof(*ret->ranks));
	ret->samples = calloc(n + 1, sizeof(*ret->samples));
	if (!ret->signatures || !ret->ranks || !ret->samples)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct member *m = &s->members[i];

		for (uint32_t k = 0; k < m->n_signatures; k++, ret->n++) {
			const struct cw_stack_signature *g = &m->signatures[k];

			ret->signatures[ret->n] = g;
			ret->ranks[ret->n] = m->rank;
			ret->samples[ret->n] = (struct cw_stack_sample){ .rank = m->index,
									 .peers = m->peers,
									 .role = g->role,
									 .is_main = g->is_main,
									 .functions = g->functions,
									 .lines = g->lines,
									 .host = m->host };
		}
	}
	return 0;
}

/* True if one line of the document describes both ranks. */
static bool is_alike(const struct compared *c, const struct cw_stack_difference *a,
		     const struct cw_stack_difference *b)
{
	return a->usual == b->usual &&
	       c->samples[a->sample].functions == c->samples[b->sample].functions &&
	       strcmp(c->signatures[a->sample]->place, c->signatures[b->sample]->place) == 0;
}

/* Describes the ranks of list[0..n) that are alike list[first], unless an earlier one is, too. */
static int describe(const struct compared *c, const struct cw_stack_difference *list, size_t n,
		    size_t first, json_t *different)
{
	const struct cw_stack_difference *d = &list[first];
	_cleanup_(cw_stack_ranks_fini) struct cw_stack_ranks ranks = { 0 };
	int r = 0;

	for (size_t i = 0; i < first; i++)
		if (is_alike(c, &list[i], d))
			return 0;
	for (size_t i = first; i < n && r == 0; i++)
		if (is_alike(c, &list[i], d))
			r = cw_stack_ranks_add(&ranks, c->ranks[list[i].sample]);
	if (r < 0)
		return r;
	return json_array_append_new(
		different, json_pack("{s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:s}", "ranks",
				     cw_stack_ranks_text(&ranks), "n", (json_int_t)ranks.n_all,
				     "thread", cw_json_text(c->signatures[d->sample]->thread),
				     "where", cw_json_text(c->signatures[d->sample]->place),
				     "usual", cw_json_text(c->signatures[d->usual]->place), "peers",
				     (json_int_t)d->n_peers, "usual_n", (json_int_t)d->n_usual,
				     "confidence", cw_confidence_name(d->confidence)));
}

/* Returns the list of different ranks; NULL = out of memory. */
static json_t *different_doc(const struct cw_stack_collection *s)
{
	_cleanup_(compared_fini) struct compared c = { 0 };
	_cleanup_(freep) struct cw_stack_difference *list = NULL;
	json_t *different = json_array();
	size_t n = 0;
	int r = different ? collect_samples(s, &c) : -ENOMEM;

	if (r == 0)
		r = cw_stack_differences_find(c.samples, c.n, s->moves, &list, &n);
	for (size_t i = 0; i < n && i < MAX_DIFFERENT && r == 0; i++)
		r = describe(&c, list, n, i, different);
	return cw_json_finish(different, r < 0);
}

json_t *cw_stack_collection_doc(const struct cw_stack_collection *s)
{
	json_t *doc, *different;

	if (!s->answers && s->n_members)
		return NULL;
	doc = cw_stack_tree_doc(s->tree, s->n_members - s->answers);
	different = different_doc(s);
	if (different && json_array_size(different) == 0)
		json_decref(different);
	else
		doc = cw_json_finish(doc, json_object_set_new(doc, "different", different));
	return doc;
}

int cw_stack_collection_add_evidence(const struct cw_stack_collection *s, json_t *evidence)
{
	return json_array_extend(evidence, s->close_docs) < 0 ? -ENOMEM : 0;
}

static int by_age(const void *a, const void *b)
{
	const struct member *x = *(const struct member *const *)a;
	const struct member *y = *(const struct member *const *)b;

	if (x->taken_ns != y->taken_ns)
		return x->taken_ns > y->taken_ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int64_t age_of(const struct cw_stack_collection *s, const struct member *m)
{
	return (cw_clock_awake_ns(s->config.clock) - m->taken_ns) / AGE_STEP_NS;
}

/* Appends the ranks of list[0..n) that have the same age. */
static int append_age(const struct cw_stack_collection *s, const struct member **list, size_t n,
		      json_t *ages)
{
	_cleanup_(cw_stack_ranks_fini) struct cw_stack_ranks ranks = { 0 };
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = cw_stack_ranks_add(&ranks, list[i]->rank);
	if (r < 0)
		return r;
	return json_array_append_new(
		ages, json_pack("{s:o, s:I, s:f}", "ranks", cw_stack_ranks_text(&ranks), "n",
				(json_int_t)ranks.n_all, "age_s",
				(double)(age_of(s, list[0]) * AGE_STEP_NS) / CW_NS_PER_S));
}

json_t *cw_stack_collection_ages(const struct cw_stack_collection *s)
{
	_cleanup_(freep) const struct member **list = calloc(s->n_members + 1, sizeof(*list));
	json_t *ages = json_array();
	size_t n = 0, first = 0;
	int r = list && ages ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->n_members && r == 0; i++)
		if (s->members[i].taken_ns)
			list[n++] = &s->members[i];
	if (n)
		qsort(list, n, sizeof(*list), by_age);
	for (size_t i = 1; i <= n && r == 0; i++) {
		if (i < n && age_of(s, list[i]) == age_of(s, list[first]))
			continue;
		r = append_age(s, list + first, i - first, ages);
		first = i;
	}
	return cw_json_finish(ages, r < 0);
}
