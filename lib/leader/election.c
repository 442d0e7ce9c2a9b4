/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is an entry for each job with ranks on this node. We elect again with each digest: the
 * living node with the highest weight leads, and the next node by weight gets a copy. If a living
 * leader does not answer or is at its limit, we bar it for a while and try the next node by weight.
 * If a leader is silent altogether, we skip it as long as it is silent.
 *
 * An answer names its job. An answer of the previous version only names the number of the digest.
 */
#include "leader/election.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/htable.h"
#include "identity/quota.h"
#include "model/signature.h"

struct entry {
	UT_hash_handle hh;
	struct cw_job_id job;
	uint64_t job_hash;     /* the weight */
	char *leader, *barred; /* node names; we skip `barred` until barred_until_ns */
	int64_t barred_until_ns;
	int64_t unanswered_ns; /* time of the first digest without an answer; 0 = none */
	int64_t since_ns, published_ns;
	uint32_t ranks_here, nodes, standing;
	char **names; /* nodes with ranks of the job, from the leader's last answer */
	uint32_t n_names;
	uint64_t numbers[CW_ELECTION_MAX_NUMBERS]; /* numbers of the last digests, a ring */
	uint64_t n_numbers;                        /* number of digests in total */
};

struct cw_election {
	const struct cw_clock *clock;
	const char *self;
	const struct cw_leader_effects *effects;
	struct entry *entries;
	uint64_t unnamed;
};

/* A collision only makes one node lead one job more or less; the weight is never used as a key. */
uint64_t cw_election_weight(uint64_t job_hash, const char *node)
{
	uint64_t h = cw_hash_mix64(job_hash);

	for (; *node; node++)
		h = cw_hash_step(h, (unsigned char)*node);
	return h;
}

int cw_election_new(const struct cw_clock *clock, const char *self,
		    const struct cw_leader_effects *effects, struct cw_election **ret)
{
	struct cw_election *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->clock = clock;
	m->self = self;
	m->effects = effects;
	*ret = m;
	return 0;
}

static void forget_names(struct entry *e)
{
	for (uint32_t i = 0; i < e->n_names; i++)
		free(e->names[i]);
	free(e->names);
	e->names = NULL;
	e->n_names = 0;
}

static void drop(struct cw_election *m, struct entry *e)
{
	HASH_DEL(m->entries, e);
	forget_names(e);
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

static struct entry *find(const struct cw_election *m, const struct cw_job_id *job)
{
	struct entry *e;

	HASH_FIND_BYHASHVALUE(hh, m->entries, job, sizeof(*job), cw_job_id_bucket(job), e);
	return e;
}

static void forget_old(struct cw_election *m, int64_t now)
{
	struct entry *e, *tmp;

	HASH_ITER (hh, m->entries, e, tmp)
		if (now - e->published_ns > CW_ELECTION_FORGET_NS)
			drop(m, e);
}

/* Makes room for an entry. Returns false if the limit is reached and no entry yields. */
static bool make_room(struct cw_election *m, uint32_t uid)
{
	_cleanup_(freep) struct cw_quota_charge *charges = NULL;
	uint32_t n = HASH_COUNT(m->entries);
	void *displaced = NULL;
	struct entry *e, *tmp;

	if (n < CW_ELECTION_MAX_JOBS - CW_ELECTION_MAX_JOBS / CW_QUOTA_RESERVE)
		return true;
	charges = calloc(n, sizeof(*charges));
	if (!charges)
		return false;
	n = 0;
	HASH_ITER (hh, m->entries, e, tmp)
		charges[n++] = (struct cw_quota_charge){
			.uid = e->job.uid,
			.is_pinned = e->standing == CW_STANDING_INCIDENT,
			.since_ns = e->since_ns,
			.holder = e,
		};
	switch (cw_quota_charge_for(uid, charges, n, CW_ELECTION_MAX_JOBS, &displaced)) {
	case CW_QUOTA_ADMIT:
		return true;
	case CW_QUOTA_DISPLACE:
		drop(m, displaced);
		return true;
	default:
		return false;
	}
}

/* now: on the awake clock, like all times of entries except since_ns. */
static struct entry *find_or_add(struct cw_election *m, const struct cw_msg_digest *d, int64_t now)
{
	struct cw_job_id job;
	struct entry *e;

	e = cw_job_id_claimed(&d->job_key, d->uid, d->label, &job) ? find(m, &job) : NULL;
	if (e)
		return e;
	if (cw_job_id_read(&d->job_key, d->uid, d->label, &job) != 0)
		return NULL;
	e = find(m, &job);
	if (e)
		return e;
	forget_old(m, now);
	if (!make_room(m, d->uid))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->job = job;
	e->job_hash = d->job_hash;
	e->since_ns = cw_clock_now_ns(m->clock);
	HASH_ADD_BYHASHVALUE(hh, m->entries, job, sizeof(e->job), cw_job_id_bucket(&job), e);
	if (!cw_htable_added(e)) {
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
	struct candidate c = { name, cw_election_weight(e->job_hash, name) };

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
 * Returns the node that leads. Returns the barred node only if there is no other, and this node if
 * there is none at all. *ret_next: the node that leads if the chosen node is lost; NULL = none.
 */
static const char *choose(const struct cw_election *m, const struct entry *e, int64_t now,
			  const char **ret_next)
{
	const char *self = m->self;
	struct candidate best = { 0 }, second = { 0 };
	const struct cw_peer *peers;
	unsigned n;

	if (!is_barred(e, self, now))
		consider(e, self, &best, &second);
	peers = m->effects->peers(m->effects->user, &n);
	for (unsigned i = 0; i < n; i++) {
		if (!cw_peer_is_alive(&peers[i], now))
			continue;
		if (is_barred(e, peers[i].name, now))
			continue;
		consider(e, peers[i].name, &best, &second);
	}
	*ret_next = second.name;
	return best.name ? best.name : self;
}

bool cw_election_is_alive(const struct cw_election *m, const char *node)
{
	const struct cw_peer *p;

	if (!strcmp(node, m->self))
		return true;
	p = cw_leader_effects_peer(m->effects, node);
	return p && cw_peer_is_alive(p, cw_clock_awake_ns(m->clock));
}

static int elect(struct cw_election *m, struct entry *e, int64_t now, const char **ret_next)
{
	bool is_over_quota = e->standing == CW_STANDING_OVER_QUOTA;
	const char *best;
	char *copy;

	/*
	 * We do not bar a leader that is silent altogether, because choose() skips it as long as it
	 * is silent.
	 */
	bool is_mute = e->leader && e->unanswered_ns &&
		       now - e->unanswered_ns >= CW_LEADER_SILENT_NS &&
		       cw_election_is_alive(m, e->leader);
	e->standing = is_over_quota ? CW_STANDING_WATCHED : e->standing; /* as far as we know */
	if (e->leader && (is_over_quota || is_mute)) {
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
	/*
	 * If no leader has room for a job, the job tries all nodes in turn, every second. Do not
	 * log that at INFO.
	 */
	if (is_over_quota)
		leader_log(m->effects, CW_LOG_DEBUG, "job=%s: %s is asked to lead", e->job.label,
			   copy);
	else if (e->leader || e->barred)
		leader_log(m->effects, CW_LOG_INFO, "job=%s: %s leads now", e->job.label, copy);
	free(e->leader);
	e->leader = copy;
	e->unanswered_ns = 0;
	return 0;
}

static int send_to(const struct cw_election *m, const char *node, const struct cw_message *digest)
{
	return m->effects->send(m->effects->user, node, digest);
}

/*
 * Sends the digest to the leader and a copy to the next leader. If the leader is lost, its
 * knowledge of its own ranks is lost, too, and the next leader needs the copy.
 */
static int send_to_both(const struct cw_election *m, const char *leader, const char *next,
			const struct cw_message *digest)
{
	int copied, r = m->effects->send_digest(m->effects->user, leader, next, digest, &copied);

	if (copied < 0)
		leader_log(m->effects, CW_LOG_DEBUG, "%s gets no copy of a digest: %s", next,
			   strerror(-copied));
	return r;
}

int cw_election_publish(struct cw_election *m, const struct cw_msg_digest *digest)
{
	struct cw_message msg = { .type = CW_MSG_DIGEST, .digest = *digest };
	int64_t now = cw_clock_awake_ns(m->clock);
	struct entry *e = find_or_add(m, digest, now);
	const char *next = NULL;

	msg.digest.sent_ns = (uint64_t)cw_clock_now_ns(m->clock);
	if (!e || elect(m, e, now, &next) < 0) /* out of memory: still watch this node's ranks */
		return send_to(m, m->self, &msg);
	e->numbers[e->n_numbers++ % CW_ELECTION_MAX_NUMBERS] = digest->number;
	e->published_ns = now;
	e->ranks_here = digest->n_ranks;
	if (!e->unanswered_ns)
		e->unanswered_ns = now;
	return next ? send_to_both(m, e->leader, next, &msg) : send_to(m, e->leader, &msg);
}

static bool is_about(const struct entry *e, uint64_t number)
{
	for (uint64_t i = 0; i < CW_ELECTION_MAX_NUMBERS && i < e->n_numbers; i++)
		if (e->numbers[i] == number)
			return true;
	return false;
}

/*
 * Finds the entry by the number of the digest. This node uses each number once, so the entry is
 * right even if two jobs have the same hash.
 */
static struct entry *find_answered(const struct cw_election *m, uint64_t number)
{
	struct entry *e, *tmp;

	HASH_ITER (hh, m->entries, e, tmp)
		if (is_about(e, number))
			return e;
	return NULL;
}

static bool has_same_names(const struct entry *e, const struct cw_msg_members *msg)
{
	if (e->n_names != msg->n_nodes)
		return false;
	for (uint32_t i = 0; i < e->n_names; i++)
		if (strcmp(e->names[i], msg->nodes[i]) != 0)
			return false;
	return true;
}

/* Notes the nodes that the leader names. If memory runs out, we believe fewer nodes. */
static void note_names(struct entry *e, const struct cw_msg_members *msg)
{
	if (has_same_names(e, msg))
		return; /* the usual case */
	forget_names(e);
	if (msg->n_nodes == 0 || msg->n_nodes > CW_ELECTION_MAX_NAMES)
		return;
	e->names = calloc(msg->n_nodes, sizeof(*e->names));
	while (e->names && e->n_names < msg->n_nodes &&
	       (e->names[e->n_names] = strdup(msg->nodes[e->n_names])))
		e->n_names++;
}

void cw_election_answer(struct cw_election *m, const char *from, const struct cw_msg_members *msg)
{
	struct cw_job_id job;
	struct entry *e = NULL;
	int r = 0;

	if (cw_job_id_claimed(&msg->job_key, msg->uid, msg->label, &job))
		e = find(m, &job);
	if (!e)
		r = cw_job_id_read(&msg->job_key, msg->uid, msg->label, &job);
	if (r == CW_JOB_ID_ABSENT)
		e = find_answered(m, msg->number);
	else if (r == 0 && !e)
		e = find(m, &job);
	if (r != 0 && !e)
		m->unnamed++;
	if (!e || !e->leader || strcmp(e->leader, from) != 0)
		return;
	e->unanswered_ns = 0;
	e->standing = msg->standing;
	e->nodes = msg->n_nodes_in_all ? msg->n_nodes_in_all : msg->n_nodes;
	note_names(e, msg);
}

/*
 * We consider peers in any state. A node that led while this node did not answer may be gone again.
 */
bool cw_election_is_deputy(const struct cw_election *m, const struct cw_job_id *job,
			   const char *node)
{
	uint64_t job_hash = cw_job_id_hash(job), weight = cw_election_weight(job_hash, node);
	const struct cw_peer *peers;
	bool is_known = false;
	unsigned n;

	peers = m->effects->peers(m->effects->user, &n);
	for (unsigned i = 0; i < n; i++) {
		is_known |= !strcmp(peers[i].name, node);
		if (cw_election_weight(job_hash, peers[i].name) > weight)
			return false;
	}
	return is_known;
}

bool cw_election_is_stand_in(const struct cw_election *m, const struct cw_job_id *job)
{
	uint64_t job_hash = cw_job_id_hash(job);
	uint64_t own = cw_election_weight(job_hash, m->self);
	int64_t now = cw_clock_awake_ns(m->clock);
	const struct cw_peer *peers;
	unsigned n;

	peers = m->effects->peers(m->effects->user, &n);
	for (unsigned i = 0; i < n; i++)
		if (cw_election_weight(job_hash, peers[i].name) > own &&
		    !cw_peer_is_alive(&peers[i], now))
			return true;
	return false;
}

bool cw_election_may_lead(const struct cw_election *m, const struct cw_job_id *job,
			  const char *node)
{
	const struct entry *e = find(m, job);

	if (!e || !e->leader)
		return false;
	return !strcmp(e->leader, node) ||
	       cw_election_weight(e->job_hash, node) > cw_election_weight(e->job_hash, e->leader);
}

bool cw_election_has_part(const struct cw_election *m, const struct cw_job_id *job,
			  const char *node)
{
	const struct entry *e = find(m, job);

	for (uint32_t i = 0; e && i < e->n_names; i++)
		if (!strcmp(e->names[i], node))
			return true;
	return e && e->leader && !strcmp(e->leader, node);
}

bool cw_election_leads_before(const struct cw_election *m, const struct cw_job_id *job,
			      const char *node)
{
	uint64_t job_hash = cw_job_id_hash(job);

	return cw_leader_effects_peer(m->effects, node) &&
	       cw_election_weight(job_hash, node) > cw_election_weight(job_hash, m->self);
}

bool cw_election_has_incident(const struct cw_election *m, const struct cw_job_id *job)
{
	const struct entry *e = find(m, job);

	return e && e->standing == CW_STANDING_INCIDENT;
}

uint64_t cw_election_unnamed(const struct cw_election *m)
{
	return m->unnamed;
}

const char *cw_election_leader(const struct cw_election *m, const struct cw_job_id *job)
{
	const struct entry *e = find(m, job);

	return e ? e->leader : NULL;
}

void cw_election_each(const struct cw_election *m, cw_election_fn fn, void *user)
{
	int64_t now = cw_clock_awake_ns(m->clock);
	struct entry *e, *tmp;

	HASH_ITER (hh, m->entries, e, tmp) {
		struct cw_election_job r = { .job = &e->job,
					     .label = e->job.label,
					     .uid = e->job.uid,
					     .leader = e->leader ? e->leader : "",
					     .ranks_here = e->ranks_here,
					     .nodes = e->nodes,
					     .standing = e->standing,
					     .since_ns = e->since_ns };

		if (now - e->published_ns < CW_LEADER_SILENT_NS)
			fn(&r, user);
	}
}
