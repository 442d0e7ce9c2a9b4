/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We sort the nodes by name, and store the newest digest of each as we received it. If this daemon
 * was held up and read a digest late, we correct the time of the digest by the sender's clock. We
 * correct it by no more than the time that this daemon was held up. `shape` counts changes of ranks
 * and memberships. We recompute derived results only when it changes.
 */
#include "leader/job_digests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/signature.h"
#include "model/snapshot.h"
#include "proto/codec.h"

int cw_job_digests_init(struct cw_job_digests *digests, const struct cw_msg_digest *first)
{
	struct cw_job_id job;
	int e = cw_job_id_read(&first->job_key, first->uid, first->label, &job);

	if (e != 0)
		return e;
	*digests =
		(struct cw_job_digests){ .job_hash = first->job_hash, .job = job, .uid = job.uid };
	digests->label = digests->job.label;
	return 0;
}

static void node_fini(struct cw_job_digests_node *n)
{
	free(n->name);
	cw_message_free(n->digest);
}

void cw_job_digests_fini(struct cw_job_digests *digests)
{
	for (unsigned i = 0; i < digests->n_nodes; i++)
		node_fini(&digests->nodes[i]);
	free(digests->nodes);
	*digests = (struct cw_job_digests){ 0 };
}

/*
 * Returns the index of the node. If there is no such node, returns the index at which it belongs.
 */
static unsigned place_of(const struct cw_job_digests *digests, const char *name)
{
	unsigned low = 0, high = digests->n_nodes;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (strcmp(digests->nodes[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct cw_job_digests_node *find(const struct cw_job_digests *digests, const char *name)
{
	unsigned i = place_of(digests, name);

	return i < digests->n_nodes && !strcmp(digests->nodes[i].name, name) ? &digests->nodes[i]
									     : NULL;
}

static struct cw_job_digests_node *add(struct cw_job_digests *digests, const char *name)
{
	unsigned at = place_of(digests, name);
	struct cw_job_digests_node *grown;
	char *copy;

	copy = strdup(name);
	grown = copy ? realloc(digests->nodes, (digests->n_nodes + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(copy);
		return NULL;
	}
	digests->nodes = grown;
	memmove(&grown[at + 1], &grown[at], (digests->n_nodes - at) * sizeof(*grown));
	grown[at] = (struct cw_job_digests_node){ .name = copy };
	digests->n_nodes++;
	return &grown[at];
}

static unsigned count_dead(const struct cw_message *m)
{
	unsigned n = 0;

	for (unsigned i = 0; m && cw_message_is_whole(m) && i < m->digest.n_ranks; i++)
		n += cw_liveness_is_dead(m->digest.ranks[i].liveness);
	return n;
}

/*
 * Hashes the input of cw_job_components(). Two different inputs may collide, by chance or on
 * purpose. We then use the previous components, which contain only this job's own ranks.
 */
static uint64_t shape_of(const struct cw_msg_digest *digest)
{
	uint64_t h = CW_HASH_INIT;

	for (uint32_t i = 0; i < digest->n_ranks; i++) {
		const struct cw_msg_rank *rank = &digest->ranks[i];

		h = cw_hash_step(h, rank->n_members);
		h = cw_hash_step(h, rank->start_ticks);
		h = cw_hash_step(h, cw_liveness_is_dead(rank->liveness));
		h = cw_hash_step(h, rank->host_call ? rank->host_call_comm_id : 0);
		for (uint32_t m = 0; m < rank->n_members; m++) {
			h = cw_hash_step(h, rank->members[m].comm_id);
			h = cw_hash_step(h, rank->members[m].instance);
		}
	}
	return h;
}

/*
 * Counts a change of ranks or memberships. We also compare the number of ranks, because after a
 * collision an old index could point outside of the digest. If the ranks are unread, we assume a
 * change.
 */
static void note_shape(struct cw_job_digests *digests, struct cw_job_digests_node *n,
		       const struct cw_message *m)
{
	const struct cw_msg_digest *digest = &m->digest;
	uint64_t shape;

	if (!cw_message_is_whole(m)) {
		digests->has_unread = true;
		digests->shape++;
		n->shape = 0;
		return;
	}
	shape = shape_of(digest);
	if (!n->digest || n->shape != shape || n->digest->digest.n_ranks != digest->n_ranks)
		digests->shape++;
	n->shape = shape;
}

/*
 * Sets the times of the digest. The caller runs this before the digest replaces the previous one.
 */
static void date(struct cw_job_digests_node *n, const struct cw_msg_digest *digest,
		 const struct cw_clock *clock)
{
	int64_t now_ns = cw_clock_now_ns(clock), awake_ns = cw_clock_awake_ns(clock);
	const struct cw_msg_digest *old = n->digest ? &n->digest->digest : NULL;
	int64_t late_ns = 0, most_ns = n->late_ns + now_ns - awake_ns - n->held_ns;

	/*
	 * How long the digest lay unread. This is the time between two digests here, minus the time
	 * between them by the sender's clock. It is at most the time that this daemon was held up.
	 * So a stopped or lying clock of the sender does no more harm than that.
	 */
	if (old && digest->epoch == old->epoch && old->sent_ns && digest->sent_ns >= old->sent_ns)
		late_ns = now_ns - n->received_ns -
			  cw_bounded_ns((int64_t)(digest->sent_ns - old->sent_ns));
	late_ns = late_ns > most_ns ? most_ns : late_ns;
	n->late_ns = late_ns > 0 ? late_ns : 0;
	n->held_ns = now_ns - awake_ns;
	n->received_ns = now_ns - n->late_ns;
	n->last_seen_ns = awake_ns;
	if (n->digest && n->digest->digest.epoch != digest->epoch)
		n->n_ahead = 0; /* the digest is from another daemon, perhaps after a boot */
	if (digest->sent_ns)
		n->ahead_ns[n->n_ahead++ % CW_JOB_DIGESTS_CLOCKS] =
			n->received_ns - cw_bounded_ns((int64_t)digest->sent_ns);
}

void cw_job_digests_node_clock(const struct cw_job_digests_node *n, int64_t *ret_late_ns,
			       int64_t *ret_spread_ns)
{
	unsigned have =
		n->n_ahead < CW_JOB_DIGESTS_CLOCKS ? (unsigned)n->n_ahead : CW_JOB_DIGESTS_CLOCKS;
	int64_t least = INT64_MAX, second = INT64_MAX;

	*ret_late_ns = 0;
	*ret_spread_ns = -1;
	if (have < 3)
		return;
	for (unsigned i = 0; i < have; i++) {
		int64_t ahead = n->ahead_ns[i];

		if (ahead < least) {
			second = least;
			least = ahead;
		} else if (ahead < second) {
			second = ahead;
		}
	}
	*ret_late_ns = n->ahead_ns[(n->n_ahead - 1) % CW_JOB_DIGESTS_CLOCKS] - least;
	*ret_spread_ns = second - least;
}

/* Reads the ranks of the node's digest. A digest that we cannot decode has no ranks. */
static void read_node(struct cw_job_digests *digests, struct cw_job_digests_node *n)
{
	uint32_t n_ranks = n->digest->digest.n_ranks;

	if (cw_message_make_whole(n->digest) < 0) {
		digests->n_ranks -= n_ranks;
		digests->refused++;
	}
	digests->shape++;
	n->shape = shape_of(&n->digest->digest);
}

bool cw_job_digests_read(struct cw_job_digests *digests, unsigned most)
{
	for (unsigned i = 0; digests->has_unread && i < digests->n_nodes; i++) {
		if (cw_message_is_whole(digests->nodes[i].digest))
			continue;
		if (most-- == 0)
			return false;
		read_node(digests, &digests->nodes[i]);
	}
	digests->has_unread = false;
	return true;
}

int cw_job_digests_put(struct cw_job_digests *digests, const char *node, struct cw_message **msg,
		       const struct cw_clock *clock, bool *ret_urgent)
{
	const struct cw_msg_digest *digest = &(*msg)->digest, *old;
	struct cw_job_digests_node *n = find(digests, node);
	uint32_t others = digests->n_ranks - (n ? n->digest->digest.n_ranks : 0);

	if (others + digest->n_ranks > CW_JOB_DIGESTS_MAX_RANKS ||
	    (!n && digests->n_nodes >= CW_JOB_DIGESTS_MAX_NODES)) {
		digests->refused++;
		return -E2BIG;
	}
	if (!n)
		n = add(digests, node);
	if (!n)
		return -ENOMEM;
	old = n->digest ? &n->digest->digest : NULL;
	/*
	 * A daemon numbers its digests from its start. If the two digests are from different
	 * starts, the later arrival counts and the epochs do not. The transport has one
	 * connection per name, so no older digest arrives late over another connection.
	 */
	if (old && digest->epoch == old->epoch && digest->number <= old->number) {
		digests->refused++;
		return -EEXIST;
	}
	if (n->digest && cw_message_is_whole(*msg) && !cw_message_is_whole(n->digest))
		read_node(digests, n);
	others = digests->n_ranks - (n->digest ? n->digest->digest.n_ranks : 0);
	*ret_urgent = count_dead(*msg) > count_dead(n->digest);
	digests->n_ranks = others + digest->n_ranks;
	note_shape(digests, n, *msg);
	date(n, digest, clock);
	cw_message_free(n->digest);
	n->digest = steal_ptr(msg);
	n->state = CW_NODE_REPORTING;
	return 0;
}

static uint32_t node_state(const struct cw_job_digests_node *n,
			   const struct cw_leader_effects *effects, int64_t awake_ns,
			   int64_t silent_ns)
{
	int64_t age = awake_ns - n->last_seen_ns;
	const struct cw_peer *p;

	if (age < silent_ns)
		return CW_NODE_REPORTING;
	p = cw_leader_effects_peer(effects, n->name);
	if (p && p->state == CW_PEER_GOODBYE)
		return CW_NODE_SAID_GOODBYE;
	if (p && p->state == CW_PEER_LOST)
		return CW_NODE_UNREACHABLE;
	return CW_NODE_SILENT;
}

static bool has_left(const struct cw_job_digests_node *n, const struct cw_leader_effects *effects,
		     const char *self, int64_t awake_ns)
{
	int64_t age = awake_ns - n->last_seen_ns;
	const struct cw_peer *p;
	int64_t since_ns;

	if (age <= CW_JOB_DIGESTS_GONE_NS)
		/* Nearly all nodes, four times a second: we avoid the search for the peer. */
		return false;
	if (age > CW_JOB_DIGESTS_FORGET_NS || !strcmp(n->name, self))
		return true;
	/*
	 * We drop the node if it has lived on without sending a digest. Being alive now does not
	 * suffice. If a node froze or lost its power, it may have sent a heartbeat after its last
	 * digest, and looks healthy for a while. If a node was held up, it sends heartbeats first
	 * when it resumes. So we grant it CW_JOB_DIGESTS_GONE_NS for its digest.
	 */
	p = cw_leader_effects_peer(effects, n->name);
	if (!p || p->state != CW_PEER_CONNECTED)
		return false;
	since_ns = p->seen_since_ns > n->last_seen_ns ? p->seen_since_ns : n->last_seen_ns;
	return p->last_seen_ns - since_ns > CW_JOB_DIGESTS_GONE_NS;
}

void cw_job_digests_refresh(struct cw_job_digests *digests, const struct cw_leader_effects *effects,
			    const char *self, const struct cw_clock *clock, int64_t silent_ns)
{
	int64_t awake_ns = cw_clock_awake_ns(clock);
	unsigned kept = 0;

	for (unsigned i = 0; i < digests->n_nodes; i++) {
		struct cw_job_digests_node *n = &digests->nodes[i];

		if (has_left(n, effects, self, awake_ns)) {
			if (awake_ns - n->last_seen_ns <= CW_JOB_DIGESTS_FORGET_NS ||
			    !strcmp(n->name, self)) {
				digests->left_ns = awake_ns;
			} else {
				digests->has_forgotten = true;
				if (n->last_seen_ns > digests->forgotten_ns)
					digests->forgotten_ns = n->last_seen_ns;
			}
			digests->n_ranks -= n->digest->digest.n_ranks;
			digests->shape++;
			node_fini(n);
			continue;
		}
		n->state = node_state(n, effects, awake_ns, silent_ns);
		digests->nodes[kept++] = *n;
	}
	digests->n_nodes = kept;
}

bool cw_job_digests_has_ranks_of(const struct cw_job_digests *digests, const char *node)
{
	const struct cw_job_digests_node *n = find(digests, node);

	return n && n->digest->digest.n_ranks > 0;
}

bool cw_job_digests_is_led_here(const struct cw_job_digests *digests)
{
	for (unsigned i = 0; i < digests->n_nodes; i++)
		if (digests->nodes[i].state == CW_NODE_REPORTING &&
		    digests->nodes[i].digest->type == CW_MSG_DIGEST)
			return true;
	return false;
}

uint64_t cw_job_digests_untracked(const struct cw_job_digests *digests)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < digests->n_nodes; i++)
		n += digests->nodes[i].digest->digest.untracked;
	return n;
}

unsigned cw_job_digests_n_reporting(const struct cw_job_digests *digests)
{
	unsigned n = 0;

	for (unsigned i = 0; i < digests->n_nodes; i++)
		n += digests->nodes[i].state == CW_NODE_REPORTING;
	return n;
}

bool cw_job_digests_awaits(const struct cw_job_digests *digests, int64_t since_awake_ns)
{
	for (unsigned i = 0; i < digests->n_nodes; i++)
		if (digests->nodes[i].state == CW_NODE_REPORTING &&
		    digests->nodes[i].last_seen_ns - digests->nodes[i].late_ns < since_awake_ns)
			return true;
	return false;
}
