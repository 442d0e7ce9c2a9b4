/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each communicator we store checkpoints on several levels. The lowest level reaches 128 calls
 * back, and the highest 65,536. We compare each checkpoint of a member with the stored checkpoint
 * of the same call. If the hashes differ, the two members diverged between their last agreement and
 * this call. Of all such ranges we keep the lowest. We request its calls in parts, each part up to
 * CW_HISTORY_TRIES times.
 *
 * Some members send the hash after each of their last calls. For these members we also store and
 * compare the hashes of the last 32 calls.
 */
#include "leader/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/htable.h"
#include "model/signature.h"

/*
 * The number of stored points for each level of cw_checkpoint_slot(). The points reach 128 calls
 * back on the lowest level, and 65,536 in all.
 */
#define KEPT_PER_LEVEL 16
/*
 * The number of stored last hashes. It suffices for all hashes that a member sends, and for members
 * that are some calls behind.
 */
#define LAST_KEPT 32

struct point {
	uint64_t seq, hash; /* seq 0 = none */
	uint32_t member;    /* the member that sent the point first */
};

struct key {
	uint64_t id;
	uint64_t instance; /* 64 bits like the id, because the hashed key must have no padding */
};

struct cw_history_comm {
	UT_hash_handle hh;
	struct key key;
	struct point points[CW_CHECKPOINT_LEVELS][KEPT_PER_LEVEL];
	struct point last[LAST_KEPT];
	uint64_t agreed_seq, differ_seq;
	uint64_t asked_to_seq; /* end of the parts that we have requested in this try; 0 = none */
	unsigned tries;
	int64_t asked_ns;
	bool is_seen; /* the current update has seen the communicator */
};

static struct key key_of(const struct cw_snap_comm *comm)
{
	return (struct key){ .id = comm->id, .instance = comm->instance };
}

static struct cw_history_comm *find(const struct cw_history *h, const struct cw_snap_comm *comm)
{
	struct key key = key_of(comm);
	struct cw_history_comm *c;

	HASH_FIND(hh, h->comms, &key, sizeof(key), c);
	return c;
}

static struct cw_history_comm *add(struct cw_history *h, const struct cw_snap_comm *comm)
{
	struct cw_history_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->key = key_of(comm);
	HASH_ADD(hh, h->comms, key, sizeof(c->key), c);
	if (!cw_htable_added(c)) {
		free(c);
		return NULL;
	}
	return c;
}

/* Returns the number of points that a member sent: its checkpoints, then its last hashes. */
static uint32_t n_shown(const struct cw_snap_member *m)
{
	return CW_SNAP_CHECKPOINTS + m->n_last_hashes;
}

static const struct cw_checkpoint *shown(const struct cw_snap_member *m, uint32_t i)
{
	return i < CW_SNAP_CHECKPOINTS ? &m->checkpoints[i]
				       : &m->last_hashes[i - CW_SNAP_CHECKPOINTS];
}

/*
 * Returns the slot of point i of a member, at coll_seq `seq`. For a checkpoint, seq /
 * CW_CHECKPOINT_EVERY gives the level. After a long group, a checkpoint may be a few calls later
 * than its slot says.
 */
static struct point *place_of_shown(struct cw_history_comm *c, uint32_t i, uint64_t seq)
{
	uint64_t n = seq / CW_CHECKPOINT_EVERY;
	unsigned level = 0;

	if (i >= CW_SNAP_CHECKPOINTS)
		return &c->last[seq % LAST_KEPT];
	for (; level + 1 < CW_CHECKPOINT_LEVELS && n && n % 8 == 0; level++)
		n /= 8;
	return &c->points[level][n % KEPT_PER_LEVEL];
}

/* The lowest point at which two members differ. seq 0 = no difference. */
struct parting {
	uint64_t seq;
	uint32_t one, other;
};

static bool shows(const struct cw_snap_member *m, const struct cw_checkpoint *p)
{
	for (uint32_t i = 0; m->rank != CW_SNAP_NONE && i < n_shown(m); i++)
		if (shown(m, i)->coll_seq == p->coll_seq && shown(m, i)->hash == p->hash)
			return true;
	return false;
}

/*
 * Returns the coll_seq of the last point at which the two members agreed. Other members may have
 * agreed at later points, but that says nothing about these two.
 */
static uint64_t last_agreed(struct cw_history_comm *c, const struct cw_snap_comm *comm,
			    const struct parting *parting)
{
	const struct cw_snap_member *other = &comm->members[parting->other];
	uint64_t best = 0;

	for (uint32_t i = 0; i < n_shown(other); i++) {
		const struct cw_checkpoint *p = shown(other, i);
		const struct point *place = place_of_shown(c, i, p->coll_seq);
		bool is_of_one = place->member == parting->one && place->seq == p->coll_seq &&
				 place->hash == p->hash;

		if (p->coll_seq > best && p->coll_seq < parting->seq &&
		    (is_of_one || shows(&comm->members[parting->one], p)))
			best = p->coll_seq;
	}
	return best;
}

/*
 * True if both members have the same points, as neighbours usually do. The second member then adds
 * nothing.
 */
static bool shows_the_same(const struct cw_snap_member *a, const struct cw_snap_member *b)
{
	return a->rank != CW_SNAP_NONE &&
	       !memcmp(a->checkpoints, b->checkpoints, sizeof(a->checkpoints)) &&
	       a->n_last_hashes == b->n_last_hashes &&
	       (!a->n_last_hashes || !memcmp(a->last_hashes, b->last_hashes,
					     a->n_last_hashes * sizeof(*a->last_hashes)));
}

static void compare(struct cw_history_comm *c, const struct cw_snap_comm *comm)
{
	struct parting parting = { 0 };

	for (uint32_t m = 0; m < comm->nranks; m++) {
		const struct cw_snap_member *member = &comm->members[m];

		if (member->rank == CW_SNAP_NONE || (m && shows_the_same(member - 1, member)))
			continue;
		for (uint32_t i = 0; i < n_shown(member); i++) {
			const struct cw_checkpoint *p = shown(member, i);
			struct point *place = place_of_shown(c, i, p->coll_seq);

			/*
			 * A newer point replaces an older one. If a late member still has the older
			 * point, we can no longer compare that point.
			 */
			if (p->coll_seq && place->seq < p->coll_seq)
				*place = (struct point){ .seq = p->coll_seq,
							 .hash = p->hash,
							 .member = m };
			else if (p->coll_seq && place->seq == p->coll_seq &&
				 place->hash != p->hash &&
				 (!parting.seq || p->coll_seq < parting.seq))
				parting = (struct parting){ p->coll_seq, place->member, m };
		}
	}
	if (!parting.seq)
		return;
	c->differ_seq = parting.seq;
	c->agreed_seq = last_agreed(c, comm, &parting);
}

int cw_history_update(struct cw_history *h, struct cw_snapshot *snap)
{
	struct cw_history_comm *seen, *tmp;

	for (uint32_t i = 0; i < snap->n_comms; i++) {
		struct cw_snap_comm *comm = &snap->comms[i];
		struct cw_history_comm *c = find(h, comm);

		if (!c)
			c = add(h, comm);
		if (!c)
			return -ENOMEM;
		c->is_seen = true;
		if (!c->differ_seq)
			compare(c, comm);
		comm->agreed_seq = c->agreed_seq;
		comm->differ_seq = c->differ_seq;
	}
	HASH_ITER (hh, h->comms, seen, tmp) {
		if (!seen->is_seen) {
			HASH_DEL(h->comms, seen);
			free(seen);
			continue;
		}
		seen->is_seen = false;
	}
	return 0;
}

bool cw_history_should_ask(struct cw_history *h, const struct cw_snap_comm *comm,
			   uint32_t max_calls, int64_t now_ns, struct cw_history_range *ret)
{
	struct cw_history_comm *c = find(h, comm);
	uint64_t from;

	if (!c || !c->differ_seq)
		return false;
	if (c->asked_to_seq == c->differ_seq) {
		if (c->tries >= CW_HISTORY_TRIES || now_ns - c->asked_ns < CW_HISTORY_RETRY_NS)
			return false;
		c->asked_to_seq = 0;
	}
	from = (c->asked_to_seq ? c->asked_to_seq : c->agreed_seq) + 1;
	c->asked_to_seq = c->differ_seq - from < max_calls ? c->differ_seq : from + max_calls - 1;
	c->tries += c->asked_to_seq == c->differ_seq;
	c->asked_ns = now_ns;
	*ret = (struct cw_history_range){ .comm_id = comm->id,
					  .from_seq = from,
					  .to_seq = c->asked_to_seq };
	return true;
}

void cw_history_fini(struct cw_history *h)
{
	struct cw_history_comm *c, *tmp;

	HASH_ITER (hh, h->comms, c, tmp) {
		HASH_DEL(h->comms, c);
		free(c);
	}
}
