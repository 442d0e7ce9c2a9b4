/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/election.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/htable.h"
#include "common/log.h"
#include "common/signature.h"
#include "daemon/shares.h"

struct entry {
	UT_hash_handle hh;
	uint64_t route;
	char *label;
	char *leader, *barred; /* names; barred: passed over until barred_until_ns */
	int64_t barred_until_ns;
	int64_t unanswered_ns; /* first digest the leader has not answered; 0 = none */
	int64_t since_ns, published_ns;
	uint32_t uid, ranks_here, nodes, standing;
};

struct cw_election {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct entry *entries;
};

uint64_t cw_election_weight(uint64_t route, const char *node)
{
	uint64_t h = cw_hash_mix64(route);

	for (; *node; node++)
		h = cw_hash_step(h, (unsigned char)*node);
	return h;
}

struct cw_election *cw_election_new(const struct cw_clock *clock, struct cw_transport *transport)
{
	struct cw_election *m = calloc(1, sizeof(*m));

	if (m) {
		m->clock = clock;
		m->transport = transport;
	}
	return m;
}

static void drop(struct cw_election *m, struct entry *e)
{
	HASH_DEL(m->entries, e);
	free(e->label);
	free(e->leader);
	free(e->barred);
	free(e);
}

struct cw_election *cw_election_free(struct cw_election *m)
{
	struct entry *e, *tmp;

	if (!m)
		return NULL;
	HASH_ITER (hh, m->entries, e, tmp)
		drop(m, e);
	free(m);
	return NULL;
}

static struct entry *find(const struct cw_election *m, uint64_t route)
{
	struct entry *e;

	HASH_FIND(hh, m->entries, &route, sizeof(route), e);
	return e;
}

static void forget_old(struct cw_election *m, int64_t now)
{
	struct entry *e, *tmp;

	HASH_ITER (hh, m->entries, e, tmp)
		if (now - e->published_ns > CW_ELECTION_FORGET_NS)
			drop(m, e);
}

/* False: there is no place for it. */
static bool make_room(struct cw_election *m, uint32_t uid)
{
	_cleanup_(freep) struct cw_share_place *places = NULL;
	uint32_t n = HASH_COUNT(m->entries);
	void *displaced = NULL;
	struct entry *e, *tmp;

	if (n < CW_ELECTION_MAX_ROUTES - CW_ELECTION_MAX_ROUTES / CW_SHARE_RESERVE)
		return true;
	places = calloc(n, sizeof(*places));
	if (!places)
		return false;
	n = 0;
	HASH_ITER (hh, m->entries, e, tmp)
		places[n++] = (struct cw_share_place){
			.uid = e->uid,
			.is_pinned = e->standing == CW_STANDING_INCIDENT,
			.since_ns = e->since_ns,
			.holder = e,
		};
	switch (cw_share_place_for(uid, places, n, CW_ELECTION_MAX_ROUTES, &displaced)) {
	case CW_SHARE_ADMIT:
		return true;
	case CW_SHARE_DISPLACE:
		drop(m, displaced);
		return true;
	default:
		return false;
	}
}

/* now: awake, as all times of entries but since_ns. */
static struct entry *find_or_add(struct cw_election *m, const struct cw_msg_digest *d, int64_t now)
{
	struct entry *e = find(m, d->route);

	if (e)
		return e;
	forget_old(m, now);
	if (!make_room(m, d->uid))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->route = d->route;
	e->uid = d->uid;
	e->since_ns = cw_clock_now_ns(m->clock);
	e->label = strdup(d->label);
	if (e->label)
		HASH_ADD(hh, m->entries, route, sizeof(e->route), e);
	if (!e->label || !cw_htable_added(e)) {
		free(e->label);
		free(e);
		return NULL;
	}
	return e;
}

struct candidate {
	const char *name;
	uint64_t weight;
};

static void consider(const struct entry *e, const char *name, struct candidate *best,
		     struct candidate *second)
{
	struct candidate c = { name, cw_election_weight(e->route, name) };

	if (!best->name || c.weight > best->weight) {
		*second = *best;
		*best = c;
	} else if (!second->name || c.weight > second->weight) {
		*second = c;
	}
}

static bool is_barred(const struct entry *e, const char *name, int64_t now)
{
	return e->barred && now < e->barred_until_ns && !strcmp(e->barred, name);
}

/*
 * Never the barred one while there is another; the own node where there is none. *ret_next: who
 * leads when the chosen one is lost; NULL = nobody.
 */
static const char *choose(const struct cw_election *m, const struct entry *e, int64_t now,
			  const char **ret_next)
{
	const char *self = cw_transport_self(m->transport);
	struct candidate best = { 0 }, second = { 0 };
	const struct cw_peer *peers;
	unsigned n;

	if (!is_barred(e, self, now))
		consider(e, self, &best, &second);
	peers = cw_transport_peers(m->transport, &n);
	for (unsigned i = 0; i < n; i++) {
		if (!cw_transport_peer_is_alive(m->transport, &peers[i]))
			continue;
		if (is_barred(e, peers[i].name, now))
			continue;
		consider(e, peers[i].name, &best, &second);
	}
	*ret_next = second.name;
	return best.name ? best.name : self;
}

static int elect(struct cw_election *m, struct entry *e, int64_t now, const char **ret_next)
{
	bool has_no_place = e->standing == CW_STANDING_NO_PLACE;
	const char *best;
	char *copy;

	/* One that is silent altogether is passed over while it is, and no longer. */
	bool is_mute = e->leader && e->unanswered_ns &&
		       now - e->unanswered_ns >= CW_LEADER_SILENT_NS &&
		       cw_transport_is_alive(m->transport, e->leader);
	e->standing = has_no_place ? CW_STANDING_WATCHED : e->standing; /* as far as is known */
	if (e->leader && (has_no_place || is_mute)) {
		free(e->barred);
		e->barred = e->leader;
		e->leader = NULL;
		e->barred_until_ns = now + CW_LEADER_BAR_NS;
	}
	best = choose(m, e, now, ret_next);
	if (e->leader && !strcmp(e->leader, best))
		return 0;
	copy = strdup(best);
	if (!copy)
		return -ENOMEM;
	/* One that finds no place goes round all nodes, every second. */
	if (has_no_place)
		log_debug("job=%s: %s is asked to lead", e->label, copy);
	else if (e->leader || e->barred)
		log_info("job=%s: %s leads now", e->label, copy);
	free(e->leader);
	e->leader = copy;
	e->unanswered_ns = 0;
	return 0;
}

/* A leader that is lost takes what it knew of its own ranks with it: the next one has a copy. */
static void send_copy(struct cw_election *m, const char *to, const struct cw_msg_digest *digest)
{
	struct cw_message msg = { .type = CW_MSG_DIGEST_COPY, .digest = *digest };
	int r = cw_transport_send(m->transport, to, &msg);

	if (r < 0)
		log_debug("%s gets no copy of a digest: %s", to, strerror(-r));
}

int cw_election_publish(struct cw_election *m, const struct cw_msg_digest *digest)
{
	struct cw_message msg = { .type = CW_MSG_DIGEST, .digest = *digest };
	int64_t now = cw_clock_awake_ns(m->clock);
	struct entry *e = find_or_add(m, digest, now);
	const char *next = NULL;

	msg.digest.sent_ns = (uint64_t)cw_clock_now_ns(m->clock);
	if (!e || elect(m, e, now, &next) < 0) /* no memory for peers: still watch what is here */
		return cw_transport_send(m->transport, cw_transport_self(m->transport), &msg);
	e->published_ns = now;
	e->ranks_here = digest->n_ranks;
	if (!e->unanswered_ns)
		e->unanswered_ns = now;
	if (next)
		send_copy(m, next, &msg.digest);
	return cw_transport_send(m->transport, e->leader, &msg);
}

void cw_election_answer(struct cw_election *m, const char *from, const struct cw_msg_members *msg)
{
	struct entry *e = find(m, msg->route);

	if (!e || !e->leader || strcmp(e->leader, from) != 0)
		return;
	e->unanswered_ns = 0;
	e->standing = msg->standing;
	e->nodes = msg->n_nodes_in_all ? msg->n_nodes_in_all : msg->n_nodes;
}

bool cw_election_has_incident(const struct cw_election *m, uint64_t route, uint32_t uid)
{
	const struct entry *e = find(m, route);

	return e && e->uid == uid && e->standing == CW_STANDING_INCIDENT;
}

const char *cw_election_leader(const struct cw_election *m, uint64_t route)
{
	const struct entry *e = find(m, route);

	return e ? e->leader : NULL;
}

void cw_election_each(const struct cw_election *m, cw_election_fn fn, void *user)
{
	int64_t now = cw_clock_awake_ns(m->clock);
	struct entry *e, *tmp;

	HASH_ITER (hh, m->entries, e, tmp) {
		struct cw_election_route r = { .route = e->route,
					       .label = e->label,
					       .uid = e->uid,
					       .leader = e->leader ? e->leader : "",
					       .ranks_here = e->ranks_here,
					       .nodes = e->nodes,
					       .standing = e->standing,
					       .since_ns = e->since_ns };

		if (now - e->published_ns < CW_LEADER_SILENT_NS)
			fn(&r, user);
	}
}
