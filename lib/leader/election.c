/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is an entry for each job with ranks on this node. We elect again with each digest. The
 * living node with the highest weight leads, and the node with the next weight gets a copy. If a
 * living leader does not answer or is at its limit, we bar it for a while. Then the node with the
 * next weight leads. If a leader sends nothing at all, we skip it until it sends something again.
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
	uint64_t job_hash;     /* hash of the job, from which we compute weights */
	char *leader, *barred; /* node names; we do not elect `barred` before barred_until_ns */
	int64_t barred_until_ns;
	int64_t unanswered_ns; /* time of the first digest without an answer; 0 = none */
	int64_t since_ns, published_ns;
	uint32_t ranks_here, nodes, standing;
	char **names; /* names of the nodes with ranks of the job, from the leader's last answer */
	uint32_t n_names;
};

struct cw_election {
	const struct cw_clock *clock;
	const char *self;
	const struct cw_leader_effects *effects;
	struct entry *entries;
	uint64_t unnamed;
};

/* A weight is never used as a key. If two weights collide, one node leads one job more or less. */
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
	struct cw_election *election = calloc(1, sizeof(*election));

	if (!election)
		return -ENOMEM;
	election->clock = clock;
	election->self = self;
	election->effects = effects;
	*ret = election;
	return 0;
}

static void forget_names(struct entry *entry)
{
	for (uint32_t i = 0; i < entry->n_names; i++)
		free(entry->names[i]);
	free(entry->names);
	entry->names = NULL;
	entry->n_names = 0;
}

static void drop(struct cw_election *election, struct entry *entry)
{
	HASH_DEL(election->entries, entry);
	forget_names(entry);
	free(entry->leader);
	free(entry->barred);
	free(entry);
}

struct cw_election *cw_election_free(struct cw_election *election)
{
	struct entry *entry, *tmp;

	if (!election)
		return NULL;
	HASH_ITER (hh, election->entries, entry, tmp)
		drop(election, entry);
	free(election);
	return NULL;
}

static struct entry *find(const struct cw_election *election, const struct cw_job_id *job)
{
	struct entry *entry;

	HASH_FIND_BYHASHVALUE(hh, election->entries, job, sizeof(*job), cw_job_id_bucket(job),
			      entry);
	return entry;
}

/*
 * Drops an entry if the limit is reached, so that a new one fits. Returns false if no entry can be
 * dropped.
 */
static bool make_room(struct cw_election *election, uint32_t uid)
{
	_cleanup_(freep) struct cw_quota_charge *charges = NULL;
	uint32_t n = HASH_COUNT(election->entries);
	void *displaced = NULL;
	struct entry *entry, *tmp;

	if (n < CW_ELECTION_MAX_JOBS - CW_ELECTION_MAX_JOBS / CW_QUOTA_RESERVE)
		return true;
	charges = calloc(n, sizeof(*charges));
	if (!charges)
		return false;
	n = 0;
	HASH_ITER (hh, election->entries, entry, tmp)
		charges[n++] = (struct cw_quota_charge){
			.uid = entry->job.uid,
			.is_pinned = entry->standing == CW_STANDING_INCIDENT,
			.since_ns = entry->since_ns,
			.holder = entry,
		};
	switch (cw_quota_charge_for(uid, charges, n, CW_ELECTION_MAX_JOBS, &displaced)) {
	case CW_QUOTA_ADMIT:
		return true;
	case CW_QUOTA_DISPLACE:
		drop(election, displaced);
		return true;
	default:
		return false;
	}
}

/*
 * Finds or adds the entry of the digest's job. now: on the awake clock, like all times of entries
 * except since_ns.
 */
static struct entry *find_or_add(struct cw_election *election, const struct cw_msg_digest *digest,
				 int64_t now)
{
	struct cw_job_id job;
	struct entry *entry, *old, *tmp;

	entry = cw_job_id_claimed(&digest->job_key, digest->uid, digest->label, &job)
			? find(election, &job)
			: NULL;
	if (entry)
		return entry;
	if (cw_job_id_read(&digest->job_key, digest->uid, digest->label, &job) != 0)
		return NULL;
	entry = find(election, &job);
	if (entry)
		return entry;
	HASH_ITER (hh, election->entries, old, tmp)
		if (now - old->published_ns > CW_ELECTION_FORGET_NS)
			drop(election, old);
	if (!make_room(election, digest->uid))
		return NULL;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->job = job;
	entry->job_hash = digest->job_hash;
	entry->since_ns = cw_clock_now_ns(election->clock);
	HASH_ADD_BYHASHVALUE(hh, election->entries, job, sizeof(entry->job), cw_job_id_bucket(&job),
			     entry);
	if (!cw_htable_added(entry)) {
		free(entry);
		return NULL;
	}
	return entry;
}

struct candidate {
	const char *name;
	uint64_t weight;
};

static void consider(const struct entry *entry, const char *name, struct candidate *best,
		     struct candidate *second)
{
	struct candidate c = { name, cw_election_weight(entry->job_hash, name) };

	if (!best->name || c.weight > best->weight) {
		*second = *best;
		*best = c;
	} else if (!second->name || c.weight > second->weight) {
		*second = c;
	}
}

static bool is_barred(const struct entry *entry, const char *name, int64_t now)
{
	return entry->barred && now < entry->barred_until_ns && !strcmp(entry->barred, name);
}

/*
 * Returns the node that leads. Returns the barred node only if there is no other candidate, and
 * this node if there is no candidate at all. *ret_next is the node that leads if the chosen node is
 * lost; NULL = none.
 */
static const char *choose(const struct cw_election *election, const struct entry *entry,
			  int64_t now, const char **ret_next)
{
	const char *self = election->self;
	struct candidate best = { 0 }, second = { 0 };
	const struct cw_peer *peers;
	unsigned n;

	if (!is_barred(entry, self, now))
		consider(entry, self, &best, &second);
	peers = election->effects->peers(election->effects->user, &n);
	for (unsigned i = 0; i < n; i++) {
		if (!cw_peer_is_alive(&peers[i], now))
			continue;
		if (is_barred(entry, peers[i].name, now))
			continue;
		consider(entry, peers[i].name, &best, &second);
	}
	*ret_next = second.name;
	return best.name ? best.name : self;
}

bool cw_election_is_alive(const struct cw_election *election, const char *node)
{
	const struct cw_peer *p;

	if (!strcmp(node, election->self))
		return true;
	p = cw_leader_effects_peer(election->effects, node);
	return p && cw_peer_is_alive(p, cw_clock_awake_ns(election->clock));
}

static int elect(struct cw_election *election, struct entry *entry, int64_t now,
		 const char **ret_next)
{
	bool is_over_quota = entry->standing == CW_STANDING_OVER_QUOTA;
	const char *best;
	char *copy;

	/*
	 * We do not bar a leader that sends nothing at all, because choose() skips such a leader
	 * anyway.
	 */
	bool is_mute = entry->leader && entry->unanswered_ns &&
		       now - entry->unanswered_ns >= CW_LEADER_SILENT_NS &&
		       cw_election_is_alive(election, entry->leader);
	entry->standing =
		is_over_quota ? CW_STANDING_WATCHED : entry->standing; /* as far as we know */
	if (entry->leader && (is_over_quota || is_mute)) {
		free(entry->barred);
		entry->barred = entry->leader;
		entry->leader = NULL;
		entry->barred_until_ns = now + CW_LEADER_BAR_NS;
	}
	best = choose(election, entry, now, ret_next);
	if (entry->leader && !strcmp(entry->leader, best))
		return 0;
	copy = strdup(best);
	if (!copy)
		return -ENOMEM;
	/*
	 * If no leader has room for a job, the job tries all nodes in turn, every second. At INFO
	 * that would fill the log.
	 */
	if (is_over_quota)
		leader_log(election->effects, CW_LOG_DEBUG, "job=%s: requesting %s to lead",
			   entry->job.label, copy);
	else if (entry->leader || entry->barred)
		leader_log(election->effects, CW_LOG_INFO, "job=%s: %s leads now", entry->job.label,
			   copy);
	free(entry->leader);
	entry->leader = copy;
	entry->unanswered_ns = 0;
	return 0;
}

static int send_to(const struct cw_election *election, const char *node,
		   const struct cw_message *digest)
{
	return election->effects->send(election->effects->user, node, digest);
}

int cw_election_publish(struct cw_election *election, const struct cw_msg_digest *digest)
{
	struct cw_message msg = { .type = CW_MSG_DIGEST, .digest = *digest };
	int64_t now = cw_clock_awake_ns(election->clock);
	struct entry *entry = find_or_add(election, digest, now);
	const char *next = NULL;
	int r, copied;

	msg.digest.sent_ns = (uint64_t)cw_clock_now_ns(election->clock);
	if (!entry || elect(election, entry, now, &next) <
			      0) /* out of memory: we still watch this node's ranks */
		return send_to(election, election->self, &msg);
	entry->published_ns = now;
	entry->ranks_here = digest->n_ranks;
	if (!entry->unanswered_ns)
		entry->unanswered_ns = now;
	if (!next)
		return send_to(election, entry->leader, &msg);
	/*
	 * A copy of the digest goes to the next leader. A lost leader takes the facts about its own
	 * ranks with it, and the next leader then needs the copy.
	 */
	r = election->effects->send_digest(election->effects->user, entry->leader, next, &msg,
					   &copied);
	if (copied < 0)
		leader_log(election->effects, CW_LOG_DEBUG,
			   "cannot send a copy of a digest to %s: %s", next, strerror(-copied));
	return r;
}

/* Stores the names of the nodes that the leader lists. If we are out of memory, we store fewer. */
static void note_names(struct entry *entry, const struct cw_msg_members *msg)
{
	uint32_t same = 0;

	while (same < entry->n_names && same < msg->n_nodes &&
	       strcmp(entry->names[same], msg->nodes[same]) == 0)
		same++;
	if (same == entry->n_names && same == msg->n_nodes)
		return; /* the usual case */
	forget_names(entry);
	if (msg->n_nodes == 0 || msg->n_nodes > CW_ELECTION_MAX_NAMES)
		return;
	entry->names = calloc(msg->n_nodes, sizeof(*entry->names));
	while (entry->names && entry->n_names < msg->n_nodes &&
	       (entry->names[entry->n_names] = strdup(msg->nodes[entry->n_names])))
		entry->n_names++;
}

void cw_election_answer(struct cw_election *election, const char *from,
			const struct cw_msg_members *msg)
{
	struct cw_job_id job;
	struct entry *entry = NULL;

	if (cw_job_id_claimed(&msg->job_key, msg->uid, msg->label, &job))
		entry = find(election, &job);
	if (!entry) {
		if (cw_job_id_read(&msg->job_key, msg->uid, msg->label, &job) < 0) {
			election->unnamed++;
			return;
		}
		entry = find(election, &job);
	}
	if (!entry || !entry->leader || strcmp(entry->leader, from) != 0)
		return;
	entry->unanswered_ns = 0;
	entry->standing = msg->standing;
	entry->nodes = msg->n_nodes_in_all ? msg->n_nodes_in_all : msg->n_nodes;
	note_names(entry, msg);
}

/*
 * We also consider peers that are not alive. A node that led while this node did not answer may be
 * gone again.
 */
bool cw_election_is_deputy(const struct cw_election *election, const struct cw_job_id *job,
			   const char *node)
{
	uint64_t job_hash = cw_job_id_hash(job), weight = cw_election_weight(job_hash, node);
	const struct cw_peer *peers;
	bool is_known = false;
	unsigned n;

	peers = election->effects->peers(election->effects->user, &n);
	for (unsigned i = 0; i < n; i++) {
		is_known |= !strcmp(peers[i].name, node);
		if (cw_election_weight(job_hash, peers[i].name) > weight)
			return false;
	}
	return is_known;
}

bool cw_election_is_stand_in(const struct cw_election *election, const struct cw_job_id *job)
{
	uint64_t job_hash = cw_job_id_hash(job);
	uint64_t own = cw_election_weight(job_hash, election->self);
	int64_t now = cw_clock_awake_ns(election->clock);
	const struct cw_peer *peers;
	unsigned n;

	peers = election->effects->peers(election->effects->user, &n);
	for (unsigned i = 0; i < n; i++)
		if (cw_election_weight(job_hash, peers[i].name) > own &&
		    !cw_peer_is_alive(&peers[i], now))
			return true;
	return false;
}

bool cw_election_may_lead(const struct cw_election *election, const struct cw_job_id *job,
			  const char *node)
{
	const struct entry *entry = find(election, job);

	if (!entry || !entry->leader)
		return false;
	return !strcmp(entry->leader, node) ||
	       cw_election_weight(entry->job_hash, node) >
		       cw_election_weight(entry->job_hash, entry->leader);
}

bool cw_election_has_part(const struct cw_election *election, const struct cw_job_id *job,
			  const char *node)
{
	const struct entry *entry = find(election, job);

	for (uint32_t i = 0; entry && i < entry->n_names; i++)
		if (!strcmp(entry->names[i], node))
			return true;
	return entry && entry->leader && !strcmp(entry->leader, node);
}

bool cw_election_leads_before(const struct cw_election *election, const struct cw_job_id *job,
			      const char *node)
{
	uint64_t job_hash = cw_job_id_hash(job);

	return cw_leader_effects_peer(election->effects, node) &&
	       cw_election_weight(job_hash, node) > cw_election_weight(job_hash, election->self);
}

bool cw_election_has_incident(const struct cw_election *election, const struct cw_job_id *job)
{
	const struct entry *entry = find(election, job);

	return entry && entry->standing == CW_STANDING_INCIDENT;
}

uint64_t cw_election_unnamed(const struct cw_election *election)
{
	return election->unnamed;
}

const char *cw_election_leader(const struct cw_election *election, const struct cw_job_id *job)
{
	const struct entry *entry = find(election, job);

	return entry ? entry->leader : NULL;
}

void cw_election_each(const struct cw_election *election, cw_election_fn fn, void *user)
{
	int64_t now = cw_clock_awake_ns(election->clock);
	struct entry *entry, *tmp;

	HASH_ITER (hh, election->entries, entry, tmp) {
		struct cw_election_job r = { .job = &entry->job,
					     .label = entry->job.label,
					     .uid = entry->job.uid,
					     .leader = entry->leader ? entry->leader : "",
					     .ranks_here = entry->ranks_here,
					     .nodes = entry->nodes,
					     .standing = entry->standing,
					     .since_ns = entry->since_ns };

		if (now - entry->published_ns < CW_LEADER_SILENT_NS)
			fn(&r, user);
	}
}
