/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/align/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_layout.h"

static int compare_peer(const void *key, const void *entry)
{
	uint32_t peer = *(const uint32_t *)key;
	const struct cw_p2p_peer *e = entry;

	return peer < e->peer ? -1 : peer > e->peer;
}

const struct cw_p2p_peer *messages_with(const struct cw_snap_member *m, uint32_t peer)
{
	return m->n_p2p ? bsearch(&peer, m->p2p, m->n_p2p, sizeof(*m->p2p), compare_peer) : NULL;
}

/* The messages that one member sends and another member receives. */
struct pair {
	const struct cw_snap_member *from, *to;
	uint32_t sender, receiver;
	uint64_t sends, recvs, send_hash, recv_hash;
};

static bool is_counted(const struct cw_snap_member *m)
{
	return m->rank != CW_SNAP_NONE && (m->known & CW_KNOWN_P2P);
}

static struct pair pair_of(const struct cw_snap_comm *c, uint32_t sender, uint32_t receiver)
{
	struct pair p = { .from = &c->members[sender],
			  .to = &c->members[receiver],
			  .sender = sender,
			  .receiver = receiver };
	const struct cw_p2p_peer *out = messages_with(p.from, receiver);
	const struct cw_p2p_peer *in = messages_with(p.to, sender);

	if (out) {
		p.sends = out->sends;
		p.send_hash = out->send_hash;
	}
	if (in) {
		p.recvs = in->recvs;
		p.recv_hash = in->recv_hash;
	}
	return p;
}

/*
 * Calls fn for each direction between two members whose counters are both known. Stops when fn does
 * not return 0, and returns that result.
 */
static int visit_pairs(const struct cw_snap_comm *c,
		       int (*fn)(void *userdata, const struct pair *p), void *userdata)
{
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];

		for (uint32_t i = 0; is_counted(member) && i < member->n_p2p; i++) {
			uint32_t peer = member->p2p[i].peer;
			const struct cw_p2p_peer *back;
			struct pair pairs[2];
			int r = 0;

			if (peer >= c->nranks || peer == m || !is_counted(&c->members[peer]))
				continue;
			/*
			 * We visit each pair once: from its lower member, or from the only member
			 * that has counters of the pair.
			 */
			back = messages_with(&c->members[peer], m);
			if (back && peer < m)
				continue;
			pairs[0] = pair_of(c, m, peer);
			pairs[1] = pair_of(c, peer, m);
			for (unsigned d = 0; d < 2 && r == 0; d++)
				if (pairs[d].sends || pairs[d].recvs)
					r = fn(userdata, &pairs[d]);
			if (r)
				return r;
		}
	}
	return 0;
}

/* ---- sizes ---- */

/*
 * Returns the newest op before index *at of the window that has this kind, this peer and a message
 * number of at most n. Moves *at to that op. NULL = no such op.
 */
static const struct cw_op *next_back(const struct cw_snap_member *m, uint32_t *at, unsigned kind,
				     uint32_t peer, uint64_t n)
{
	while (*at) {
		const struct cw_op *op = &m->window[--*at];

		if (op->kind == kind && op->peer == (int32_t)peer && op->p2p_seq &&
		    op->p2p_seq <= n)
			return op;
	}
	return NULL;
}

/*
 * Finds the oldest message with both halves in the windows and different sizes. We walk both
 * windows from their ends. A message number may occur twice, if the program gave up the first group
 * with this number. So the later call counts.
 */
static bool find_size(const struct pair *p, struct message_fault *f)
{
	uint32_t at = p->from->n_window, other = p->to->n_window;
	uint64_t n = p->sends < p->recvs ? p->sends : p->recvs;
	const struct cw_op *send, *recv = next_back(p->to, &other, CW_OP_RECV, p->sender, n);
	bool found = false;

	while (recv && (send = next_back(p->from, &at, CW_OP_SEND, p->receiver, n))) {
		n = send->p2p_seq - 1;
		while (recv && recv->p2p_seq > send->p2p_seq)
			recv = next_back(p->to, &other, CW_OP_RECV, p->sender, send->p2p_seq);
		if (!recv || recv->p2p_seq != send->p2p_seq || recv->bytes == send->bytes)
			continue;
		f->send = send;
		f->recv = recv;
		found = true;
	}
	return found;
}

/*
 * Compares the sizes of the messages of a pair by their hashes. A hash of 0 means that the counters
 * moved while the daemon read them, so we cannot compare.
 */
static bool sizes_differ(const struct pair *p, struct message_fault *f)
{
	bool are_even = p->sends == p->recvs && p->send_hash && p->recv_hash;

	if (are_even && p->send_hash == p->recv_hash)
		return false;
	return find_size(p, f) || are_even;
}

/* ---- halves that were never posted ---- */

static bool has_ended_well(const struct cw_snap_rank *r)
{
	return r->liveness == CW_LIVE_EXITED && !r->exit_code;
}

/*
 * True if the member posts no more messages on this comm, and no failure prevented it from posting
 * them. If all ranks of a node ended together, a rank that ended with status 0 still counts as
 * done.
 */
static bool is_done(const struct cw_snapshot *snap, const struct cw_snap_member *m)
{
	const struct cw_snap_rank *r = &snap->ranks[m->rank];

	if (m->async_error || ((r->flags & CW_RANKF_SHUTDOWN) && !cw_liveness_is_dead(r->liveness)))
		return false;
	if (m->state == CW_COMM_FINALIZING || m->state == CW_COMM_DESTROYED)
		return !cw_liveness_is_dead(r->liveness) || has_ended_well(r);
	return m->state == CW_COMM_READY && has_ended_well(r) && r->sampled_ns >= r->ended_ns;
}

/*
 * True if some rank failed, or gave up a communicator. Such a rank drops its messages in flight, so
 * a missing half is no fault.
 */
static bool has_failed(const struct cw_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (cw_liveness_is_dead(snap->ranks[i].liveness) &&
		    !has_ended_well(&snap->ranks[i]))
			return true;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank != CW_SNAP_NONE &&
			    (member->state == CW_COMM_ABORTED || member->state == CW_COMM_REVOKED ||
			     member->async_error))
				return true;
		}
	return false;
}

/* ---- the fault of a communicator ---- */

struct comparison {
	const struct cw_snapshot *snap;
	struct message_fault size, left;
	bool *owes;      /* per member: it owes a message; NULL = no member owes one so far */
	uint32_t *pairs; /* per member: number of pairs whose sizes differ; NULL = none so far */
	uint32_t nranks;
	struct cw_arena *a;
};

static void note(struct message_fault *f, enum cw_detail detail, const struct pair *p)
{
	if (f->n_pairs++)
		return;
	f->detail = detail;
	f->sender = p->sender;
	f->receiver = p->receiver;
	f->sends = p->sends;
	f->recvs = p->recvs;
}

static int compare_pair(void *userdata, const struct pair *p)
{
	struct comparison *c = userdata;
	struct message_fault f = { 0 };

	if (sizes_differ(p, &f)) {
		if (!c->pairs && !(c->pairs = cw_arena_new_array(c->a, uint32_t, c->nranks)))
			return -ENOMEM;
		c->pairs[p->sender]++;
		c->pairs[p->receiver]++;
		if (!c->size.n_pairs) {
			c->size.send = f.send;
			c->size.recv = f.recv;
		}
		note(&c->size, CW_DETAIL_SIZE, p);
		return 0;
	}
	if (p->sends == p->recvs || !is_done(c->snap, p->from) || !is_done(c->snap, p->to))
		return 0;
	if (!c->owes && !(c->owes = cw_arena_new_array(c->a, bool, c->nranks)))
		return -ENOMEM;
	c->owes[p->sends > p->recvs ? p->receiver : p->sender] = true;
	note(&c->left, CW_DETAIL_NOT_POSTED, p);
	return 0;
}

int messages_compare(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
		     struct message_fault *ret)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	struct comparison comparison = { .snap = snap, .nranks = c->nranks, .a = a };
	uint32_t in_all = 0; /* number of members that are in all of the faulty pairs */
	int r = visit_pairs(c, compare_pair, &comparison);

	*ret = (struct message_fault){ 0 };
	if (r < 0)
		return r;
	if (comparison.size.n_pairs)
		*ret = comparison.size;
	else if (comparison.left.n_pairs && !has_failed(snap))
		*ret = comparison.left;
	if (!ret->n_pairs)
		return 0;
	ret->culprits = cw_arena_new_array(a, uint32_t, c->nranks);
	if (!ret->culprits)
		return -ENOMEM;
	for (uint32_t m = 0; ret->detail == CW_DETAIL_SIZE && m < c->nranks; m++)
		in_all += comparison.pairs[m] == ret->n_pairs;
	/*
	 * If exactly one member is in all of the pairs whose sizes differ, only this member is a
	 * culprit. Otherwise both members of the first pair are culprits.
	 */
	for (uint32_t m = 0; m < c->nranks; m++)
		if (ret->detail != CW_DETAIL_SIZE ? comparison.owes[m]
		    : in_all == 1                 ? comparison.pairs[m] == ret->n_pairs
						  : m == ret->sender || m == ret->receiver)
			ret->culprits[ret->n_culprits++] = c->members[m].rank;
	return 0;
}

static int is_uneven(void *userdata, const struct pair *p)
{
	(void)userdata;
	return p->sends != p->recvs;
}

bool messages_are_uneven(const struct cw_snapshot *snap, uint32_t comm)
{
	return visit_pairs(&snap->comms[comm], is_uneven, NULL) > 0;
}
