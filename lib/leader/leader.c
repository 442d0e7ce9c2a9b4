/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of jobs, messages between leaders, and scheduling of evaluations. The evaluation of a
 * job is in job_evaluation.c.
 *
 * A digest creates or renews the entry of its job key, and its sender gets an answer. If this
 * leader is at its limit, the sender asks the next node. We do not read copies of digests until
 * their leader is lost. If two nodes both think that they lead, a third node objects to all but the
 * first announcer. We charge the CPU time of evaluations to the user of the jobs.
 */
#include "leader/leader.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "identity/quota.h"
#include "identity/uid_count.h"
#include "identity/untracked.h"
#include "leader/job_evaluation.h"
#include "leader/snapshot_build.h"

/* The reason in an objection. take_objection() of the announcing node compares with this text. */
#define ANNOUNCED_FIRST "another node announced it first"

/* A node's announcement of an incident of a job. We remember it for CW_LEADER_ANNOUNCED_NS. */
struct cw_announced {
	struct cw_job_id job;
	int64_t at_ns; /* time of the announcement, awake; 0 = unused */
	char node[64];
	bool led_here; /* this node reported to that node at that time */
};

struct cw_leader {
	struct cw_leader_config config;
	struct cw_leader_entry *entries;
	struct cw_uid_count *held; /* number of job keys for each user */
	struct cw_untracked *untracked;
	int64_t untracked_ns; /* time of the last tick of `untracked` */
	struct cw_job_evaluations evaluations;
	/*
	 * The CPU time that evaluations and text have used since spent_since_ns. When it exceeds
	 * CW_LEADER_TEXT_NS, we write no more text.
	 */
	int64_t spent_ns, spent_since_ns;
	int64_t woke_ns; /* end of this daemon's last hold-up, on the awake clock */
	struct cw_announced announced[CW_LEADER_MAX_ANNOUNCED];
	unsigned next_announced;
	struct cw_leader_stats stats;
};

static void log_untracked(void *user, int level, const char *line)
{
	leader_log(((struct cw_leader *)user)->config.effects, level, "%s", line);
}

int cw_leader_new(const struct cw_leader_config *config, struct cw_leader **ret)
{
	struct cw_leader *l = calloc(1, sizeof(*l));
	struct cw_untracked_config untracked = {
		.one = "job",
		.many = "jobs",
		.why = "this node leads the maximum number of jobs",
		.keep_ns = CW_LEADER_UNTRACKED_KEEP_NS,
		.log = log_untracked,
		.user = l,
	};

	if (!l)
		return -ENOMEM;
	l->config = *config;
	l->evaluations.config = &l->config;
	l->evaluations.stats = &l->stats;
	if (cw_untracked_new(&untracked, &l->untracked) < 0) {
		(void)cw_leader_free(l); /* always NULL */
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

static void end_jobs(struct cw_leader *l, struct cw_leader_entry *entry, bool was_led_here)
{
	struct cw_job *job, *tmp;

	cw_postmortem_fini(&entry->postmortems, l->config.effects, was_led_here);
	DL_FOREACH_SAFE (entry->jobs, job, tmp)
		cw_job_evaluation_end_job(&l->evaluations, entry, job, was_led_here);
}

static void drop_entry(struct cw_leader *l, struct cw_leader_entry *entry, bool was_led_here)
{
	end_jobs(l, entry, was_led_here);
	HASH_DEL(l->entries, entry);
	cw_uid_count_remove(&l->held, entry->digests.uid);
	l->stats.job_keys--;
	if (!l->stats.job_keys)
		l->evaluations.spare = cw_snapshot_free(l->evaluations.spare);
	cw_process_map_fini(&entry->processes);
	free(entry->refs);
	cw_job_digests_fini(&entry->digests);
	free(entry);
}

struct cw_leader *cw_leader_free(struct cw_leader *l)
{
	struct cw_leader_entry *entry, *tmp;

	if (!l)
		return NULL;
	HASH_ITER (hh, l->entries, entry, tmp)
		drop_entry(l, entry, false);
	(void)cw_untracked_free(l->untracked); /* always NULL */
	free(l);
	return NULL;
}

/* ---- entries ---- */

static struct cw_leader_entry *find_entry(const struct cw_leader *l, const struct cw_job_id *job)
{
	struct cw_leader_entry *entry;

	HASH_FIND_BYHASHVALUE(hh, l->entries, job, sizeof(*job), cw_job_id_bucket(job), entry);
	return entry;
}

static bool has_incident(const struct cw_leader_entry *entry)
{
	const struct cw_job *job;

	DL_FOREACH (entry->jobs, job)
		if (*cw_job_incidents_id(&job->incidents))
			return true;
	return false;
}

static void note_untracked(struct cw_leader *l, uint32_t uid, const char *label)
{
	const struct cw_untracked_item item = { .uid = uid, .label = label };

	cw_untracked_note(l->untracked, &item, -1, cw_clock_now_ns(l->config.clock));
}

/*
 * Finds an entry that another entry may displace. A new copy displaces only copies, and never an
 * entry that this node leads.
 */
static struct cw_leader_entry *find_displaced(const struct cw_leader *l, uint32_t users,
					      bool for_copy)
{
	_cleanup_(freep) struct cw_quota_charge *charges =
		calloc(l->stats.job_keys, sizeof(*charges));
	struct cw_leader_entry *entry, *tmp;
	size_t n = 0;

	if (!charges)
		return NULL;
	HASH_ITER (hh, l->entries, entry, tmp)
		charges[n++] = (struct cw_quota_charge){
			.uid = entry->digests.uid,
			.is_pinned = entry->is_led && (for_copy || has_incident(entry)),
			.since_ns = entry->is_led ? entry->since_ns : INT64_MAX,
			.holder = entry,
		};
	return cw_quota_displaced(charges, n, CW_LEADER_MAX_JOB_KEYS, users);
}

/*
 * Drops an entry if the limit is reached, so that a new one fits. Returns false if no entry can be
 * dropped.
 */
static bool make_room(struct cw_leader *l, uint32_t uid, bool for_copy)
{
	const struct cw_quota_count count = {
		.capacity = CW_LEADER_MAX_JOB_KEYS,
		.taken = l->stats.job_keys,
		.users = cw_uid_count_users(l->held, uid),
		.own = cw_uid_count_get(l->held, uid),
	};
	enum cw_quota_answer answer = cw_quota_ask(&count);
	struct cw_leader_entry *displaced;

	if (answer != CW_QUOTA_DISPLACE)
		return answer == CW_QUOTA_ADMIT;
	displaced = find_displaced(l, count.users, for_copy);
	if (!displaced)
		return false;
	if (displaced->is_led)
		note_untracked(l, displaced->digests.uid, displaced->digests.label);
	drop_entry(l, displaced, false);
	l->stats.displaced++;
	return true;
}

/*
 * Returns the time before which we do not evaluate a new entry of this user. All entries of a user
 * share one budget, so a new entry brings no budget of its own.
 */
static int64_t not_before_of(const struct cw_leader *l, uint32_t uid)
{
	struct cw_leader_entry *entry, *tmp;

	HASH_ITER (hh, l->entries, entry, tmp)
		if (entry->digests.uid == uid)
			return entry->not_before_ns;
	return 0;
}

static struct cw_leader_entry *add_entry(struct cw_leader *l, const struct cw_msg_digest *d)
{
	struct cw_leader_entry *entry = calloc(1, sizeof(*entry));

	if (!entry || cw_uid_count_add(&l->held, d->uid) < 0) {
		free(entry);
		return NULL;
	}
	entry->since_ns = cw_clock_now_ns(l->config.clock);
	entry->not_before_ns = not_before_of(l, d->uid);
	if (cw_job_digests_init(&entry->digests, d) == 0)
		HASH_ADD_BYHASHVALUE(hh, l->entries, digests.job, sizeof(entry->digests.job),
				     cw_job_id_bucket(&entry->digests.job), entry);
	if (!entry->digests.label || !cw_htable_added(entry)) {
		cw_uid_count_remove(&l->held, d->uid);
		cw_job_digests_fini(&entry->digests);
		free(entry);
		return NULL;
	}
	l->stats.job_keys++;
	return entry;
}

/* ---- messages ---- */

static void send_members(struct cw_leader *l, const char *to, const struct cw_job_id *job,
			 const struct cw_msg_members *members)
{
	struct cw_message msg = { .type = CW_MSG_MEMBERS, .members = *members };
	int r;

	msg.members.job_key = job->key;
	msg.members.uid = job->uid;
	msg.members.label = job->label;
	msg.members.leader = l->config.self;
	r = l->config.effects->send(l->config.effects->user, to, &msg);
	if (r < 0)
		leader_log(l->config.effects, CW_LOG_DEBUG, "cannot answer the digest of %s: %s",
			   to, strerror(-r));
}

/* Answers a digest that has this number and job_hash. */
static void answer(struct cw_leader *l, const struct cw_leader_entry *entry, const char *to,
		   uint64_t number, uint64_t job_hash)
{
	const char *names[CW_LEADER_MAX_NAMED];
	uint32_t n_names =
		entry->digests.n_nodes <= CW_LEADER_MAX_NAMED ? entry->digests.n_nodes : 0;

	for (uint32_t i = 0; i < n_names; i++)
		names[i] = entry->digests.nodes[i].name;
	send_members(l, to, &entry->digests.job,
		     &(struct cw_msg_members){ .job_hash = job_hash,
					       .number = number,
					       .nodes = names,
					       .n_nodes = n_names,
					       .n_nodes_in_all = entry->digests.n_nodes,
					       .standing = has_incident(entry)
								   ? CW_STANDING_INCIDENT
								   : CW_STANDING_WATCHED });
}

/*
 * Finds the entry of a digest. *ret = NULL: this node does not lead the job yet. Returns the result
 * of cw_job_id_read().
 */
static int find_entry_of_digest(const struct cw_leader *l, const struct cw_msg_digest *d,
				struct cw_job_id *ret_job, struct cw_leader_entry **ret)
{
	int r;

	*ret = NULL;
	if (cw_job_id_claimed(&d->job_key, d->uid, d->label, ret_job))
		*ret = find_entry(l, ret_job);
	if (*ret)
		return 0;
	r = cw_job_id_read(&d->job_key, d->uid, d->label, ret_job);
	if (r == 0)
		*ret = find_entry(l, ret_job); /* the digest may have no key */
	return r;
}

static void take_digest(struct cw_leader *l, const char *from, struct cw_message **msg)
{
	const struct cw_msg_digest *d = &(*msg)->digest;
	struct cw_leader_entry *entry = NULL;
	int64_t now = cw_clock_now_ns(l->config.clock);
	bool is_copy = (*msg)->type == CW_MSG_DIGEST_COPY, is_urgent = false;
	uint64_t number = d->number, job_hash = d->job_hash;
	const struct cw_leader_effects *effects = l->config.effects;
	struct cw_job_id job;

	/* We refuse a digest that is not about its sender, or does not name its job. */
	if (strcmp(d->node, from) != 0 || find_entry_of_digest(l, d, &job, &entry) != 0) {
		l->stats.refused_digests++;
		return;
	}
	if (!entry && d->n_ranks == 0) {
		/*
		 * There is nothing to watch. But without an answer the node would search for
		 * another leader.
		 */
		if (d->untracked && !is_copy)
			send_members(
				l, from, &job,
				&(struct cw_msg_members){ .job_hash = job_hash, .number = number });
		return;
	}
	if (!entry && !make_room(l, d->uid, is_copy)) {
		l->stats.refused_digests++;
		if (is_copy)
			return;
		/* The refused node shows the refusal in its status, and tries the next leader. */
		note_untracked(l, d->uid, d->label);
		send_members(l, from, &job,
			     &(struct cw_msg_members){ .job_hash = d->job_hash,
						       .number = d->number,
						       .n_nodes_in_all = 1,
						       .standing = CW_STANDING_OVER_QUOTA });
		return;
	}
	if (!entry)
		entry = add_entry(l, d);
	if (!entry ||
	    cw_job_digests_put(&entry->digests, from, msg, l->config.clock, &is_urgent) < 0) {
		l->stats.refused_digests++;
		return;
	}
	if (is_copy) {
		/*
		 * This digest is only a copy for another leader. We read the ranks of a copy only
		 * if we lead the job key ourselves. Then there are few copies: those from nodes
		 * that follow another leader.
		 */
		if (entry->is_led)
			(void)cw_job_digests_read(&entry->digests, CW_LEADER_ITERATION_COPIES);
		return;
	}
	if (is_urgent || !entry->is_led)
		entry->next_ns = now;
	if (!entry->is_led)
		cw_untracked_forget(l->untracked,
				    &(struct cw_untracked_item){ .uid = entry->digests.uid,
								 .label = entry->digests.label });
	entry->is_led = true;
	/*
	 * We pass on a mute that a user typed on another node. We ignore the mute in a refused
	 * digest. The status does not list its sender as a node of the job, so the job would become
	 * silent without a visible reason. The entry owns the message now.
	 */
	if (effects->muted && d->n_ranks && strcmp(from, l->config.self) != 0)
		effects->muted(effects->user, from, d->uid, d->label, d->muted_until_ns);
	answer(l, entry, from, number, job_hash);
}

/*
 * Finds an incident of this user by its id. Other users may claim the id in messages. label: the
 * label of the incident's job; NULL = any job of this user.
 */
static struct cw_incident *find_incident(const struct cw_leader *l, uint32_t uid, const char *label,
					 const char *id)
{
	struct cw_leader_entry *entry, *tmp;
	struct cw_job *job;

	HASH_ITER (hh, l->entries, entry, tmp) {
		if (entry->digests.uid != uid ||
		    (label && strcmp(entry->digests.label, label) != 0))
			continue;
		DL_FOREACH (entry->jobs, job) {
			struct cw_incident *inc = cw_job_incidents_find(&job->incidents, id);

			if (inc)
				return inc;
		}
	}
	return NULL;
}

/*
 * True if this node leads the job, and node `from`, which announced an incident, reports to this
 * node.
 */
static bool leads_better(const struct cw_leader *l, const struct cw_job_id *job, const char *from)
{
	const char *self = l->config.self;
	const char *leader = cw_election_leader(l->config.members, job);
	const struct cw_leader_entry *entry = find_entry(l, job);

	if (!leader || strcmp(leader, self) != 0 || !entry ||
	    cw_job_digests_n_reporting(&entry->digests) < 2)
		return false;
	for (unsigned i = 0; i < entry->digests.n_nodes; i++)
		if (!strcmp(entry->digests.nodes[i].name, from))
			return true; /* `from` reports to this node */
	return false;
}

static bool is_led_by(const struct cw_leader *l, const struct cw_job_id *job, const char *node)
{
	const char *leader = cw_election_leader(l->config.members, job);

	return leader && !strcmp(leader, node);
}

/*
 * True if we object to the announcement of node `from`, because another node announced an incident
 * of the job first. If some links are cut, two nodes may each think that they lead. A third node
 * that has contact with both lets the first announcer speak while that node is alive.
 *
 * There are two exceptions, both only if this node now reports to `from`:
 *
 *  - This node reported to the first announcer at the time of its announcement. That node then
 *    stood in for a daemon that was held up. It no longer leads, and will not speak.
 *  - CW_LEADER_SPEAKS_NS have passed. This node already reported to `from` at that time, so the
 *    first announcer was about to give way. If it has not alerted by now, it never will.
 */
static bool was_announced_by_another(struct cw_leader *l, const struct cw_job_id *job,
				     const char *from)
{
	int64_t now = cw_clock_awake_ns(l->config.clock);
	struct cw_announced *mine = &l->announced[l->next_announced];

	for (unsigned i = 0; i < CW_LEADER_MAX_ANNOUNCED; i++) {
		struct cw_announced *a = &l->announced[i];

		if (!a->at_ns || now - a->at_ns > CW_LEADER_ANNOUNCED_NS ||
		    !cw_job_id_is_equal(&a->job, job))
			continue;
		if (!strcmp(a->node, from)) {
			a->at_ns = now;
			return false;
		}
		if (is_led_by(l, job, from) &&
		    (a->led_here || now - a->at_ns > CW_LEADER_SPEAKS_NS))
			a->at_ns = 0;
		else if (cw_election_is_alive(l->config.members, a->node))
			return true;
	}
	l->next_announced = (l->next_announced + 1) % CW_LEADER_MAX_ANNOUNCED;
	mine->job = *job;
	mine->at_ns = now;
	mine->led_here = is_led_by(l, job, from);
	(void)snprintf(mine->node, sizeof(mine->node), "%s", from);
	return false;
}

/* True if a node that announced an incident of the job has become unreachable since. */
static bool was_announced_by_lost_peer(const struct cw_leader *l, const struct cw_job_id *job)
{
	int64_t now = cw_clock_awake_ns(l->config.clock);

	for (unsigned i = 0; i < CW_LEADER_MAX_ANNOUNCED; i++) {
		const struct cw_announced *a = &l->announced[i];

		if (a->at_ns && now - a->at_ns < CW_LEADER_ANNOUNCED_NS &&
		    cw_job_id_is_equal(&a->job, job) &&
		    !cw_election_is_alive(l->config.members, a->node))
			return true;
	}
	return false;
}

static void take_announcement(struct cw_leader *l, const char *from,
			      const struct cw_msg_incident_announce *a)
{
	struct cw_message msg = {
		.type = CW_MSG_INCIDENT_OBJECTION,
		.incident_objection = { .id = a->id,
					.node = l->config.self,
					.uid = a->uid,
					.label = a->label },
	};
	const struct cw_incident_due due = { .id = a->id, .job = a->label, .uid = a->uid };
	const struct cw_incident *inc = find_incident(l, a->uid, a->label, a->id);
	const char *reason = NULL;
	struct cw_job_id job;
	int r = cw_job_id_read(&a->job_key, a->uid, a->label, &job);

	l->stats.announcements++;
	if (r < 0) {
		l->stats.unnamed++;
		return;
	}
	if ((inc && cw_incident_state(inc) == CW_INCIDENT_ALERTED) ||
	    l->config.effects->was_sent_here(l->config.effects->user, &due))
		reason = "the alert went out from here";
	else if (leads_better(l, &job, from))
		reason = "this node leads the job";
	else if (was_announced_by_another(l, &job, from))
		reason = ANNOUNCED_FIRST;
	if (!reason)
		return;
	msg.incident_objection.reason = reason;
	r = l->config.effects->send(l->config.effects->user, from, &msg);
	if (r < 0)
		leader_log(l->config.effects, CW_LOG_DEBUG,
			   "inc=%s: the objection does not reach %s: %s", a->id, from,
			   strerror(-r));
}

/* True if the node leads the job as far as this node knows, or would lead it without this node. */
static bool is_party(const struct cw_leader *l, const struct cw_job_id *job, const char *node)
{
	return is_led_by(l, job, node) || cw_election_is_deputy(l->config.members, job, node);
}

static void take_objection(struct cw_leader *l, const char *from,
			   const struct cw_msg_incident_objection *o)
{
	struct cw_incident *inc = find_incident(l, o->uid, o->label, o->id);
	/* how often the objection may defer an incident; 0 = without limit */
	unsigned times = CW_INCIDENT_MAX_DEFERRED;
	struct cw_job_id job;

	l->stats.objections++;
	/*
	 * The objection "another node announced it" shows no knowledge of the objecting node,
	 * because any node can announce.
	 */
	if (cw_job_id_make(o->uid, o->label, &job) == 0) {
		if (strcmp(o->reason, ANNOUNCED_FIRST) != 0 && is_party(l, &job, from))
			times = 0;
		else if (cw_election_is_stand_in(l->config.members, &job))
			times = CW_INCIDENT_MAX_DEFERRED_PARTITIONED;
	}
	if (inc && !cw_incident_object(inc, from, o->reason, times))
		l->stats.overruled++;
}

bool cw_leader_has_open(const struct cw_leader *l, uint32_t uid, const char *id)
{
	const struct cw_incident *inc = find_incident(l, uid, NULL, id);

	return inc && cw_incident_is_open(inc);
}

bool cw_leader_has_part(const struct cw_leader *l, const struct cw_job_id *job, const char *node)
{
	const struct cw_leader_entry *entry = find_entry(l, job);

	return (entry && cw_job_digests_has_ranks_of(&entry->digests, node)) ||
	       cw_election_has_part(l->config.members, job, node);
}

bool cw_leader_is_unconfirmed(struct cw_leader *l, const char *from, uint32_t uid,
			      const char *label, const char *id)
{
	const struct cw_incident *inc = find_incident(l, uid, NULL, id);
	const struct cw_leader_entry *entry;
	struct cw_job_id job;
	bool is_believed;

	/*
	 * The claim names a job and an incident id. We believe it unless we know that the id
	 * belongs to another job.
	 */
	if (cw_job_id_make(uid, label, &job) < 0 ||
	    (inc && inc != find_incident(l, uid, label, id))) {
		l->stats.unconfirmed++;
		return true;
	}
	entry = find_entry(l, &job);
	if (entry && entry->is_led)
		is_believed = is_party(l, &job, from);
	else
		is_believed = cw_leader_has_part(l, &job, from) ||
			      cw_election_leads_before(l->config.members, &job, from);
	l->stats.unconfirmed += !is_believed;
	return !is_believed;
}

bool cw_leader_message(struct cw_leader *l, const char *from, struct cw_message **msg)
{
	switch ((*msg)->type) {
	case CW_MSG_DIGEST:
	case CW_MSG_DIGEST_COPY:
		take_digest(l, from, msg);
		return true;
	case CW_MSG_INCIDENT_ANNOUNCE:
		take_announcement(l, from, &(*msg)->incident_announce);
		return true;
	case CW_MSG_INCIDENT_OBJECTION:
		take_objection(l, from, &(*msg)->incident_objection);
		return true;
	default:
		return false;
	}
}

/* ---- time ---- */

static int64_t cpu_ns(const struct cw_leader *l)
{
	return l->config.cpu_ns ? l->config.cpu_ns(l->config.cpu_user) : 0;
}

/* Charges the CPU time since `start` to all entries of the user. */
static void charge(struct cw_leader *l, uint32_t uid, int64_t start, int64_t now)
{
	int64_t cost = cpu_ns(l) - start;
	struct cw_leader_entry *entry, *tmp;

	l->spent_ns += cost;
	if (cost < CW_LEADER_CHEAP_EVALUATION_NS)
		return;
	HASH_ITER (hh, l->entries, entry, tmp) {
		if (entry->digests.uid != uid)
			continue;
		if (entry->not_before_ns < now)
			entry->not_before_ns = now;
		entry->not_before_ns += (CW_LEADER_EVALUATION_SHARE - 1) * cost;
	}
}

/* True if the CPU budget allows us to continue a pending evaluation. */
static bool may_finish(struct cw_leader *l, int64_t now)
{
	if (now - l->spent_since_ns >= CW_LEADER_TEXT_EVERY_NS) {
		l->spent_since_ns = now;
		l->spent_ns = 0;
	}
	return l->evaluations.pending.snap &&
	       (!l->evaluations.pending.is_judged || l->spent_ns < CW_LEADER_TEXT_NS);
}

/* Compares two entries for sorting: the entry with the oldest evaluation comes first. */
static int by_last_evaluation(const struct cw_leader_entry *a, const struct cw_leader_entry *b)
{
	return (a->evaluated_ns > b->evaluated_ns) - (a->evaluated_ns < b->evaluated_ns);
}

/* Evaluates the entry if it is due, within the limits of one iteration. */
static void evaluate_if_due(struct cw_leader *l, struct cw_leader_entry *entry, int64_t now)
{
	struct cw_job *job;
	int64_t start;

	DL_FOREACH (entry->jobs, job) {
		if (job->is_due)
			entry->next_ns = now;
		job->is_due = false;
	}
	if (now < entry->next_ns || now < entry->not_before_ns)
		return;
	/*
	 * If this daemon was held up, the entry's digests may be old. We do not evaluate until the
	 * job's nodes have sent new digests, or are late with them.
	 */
	if (l->woke_ns &&
	    cw_clock_awake_ns(l->config.clock) - l->woke_ns < CW_JOB_DIGESTS_GONE_NS &&
	    cw_job_digests_awaits(&entry->digests, l->woke_ns))
		return;
	if (l->evaluations.iteration_members >=
		    cw_job_evaluation_iteration_members(&l->evaluations) ||
	    !cw_job_digests_read(&entry->digests, CW_LEADER_ITERATION_COPIES)) {
		l->evaluations.has_deferred = true;
		return;
	}
	start = cpu_ns(l);
	entry->next_ns = now + CW_LEADER_EVALUATE_EVERY_NS;
	entry->evaluated_ns = now;
	entry->was_announced_by_lost_peer = was_announced_by_lost_peer(l, &entry->digests.job);
	cw_job_evaluation_run(&l->evaluations, entry, now);
	charge(l, entry->digests.uid, start, now);
}

/*
 * Ends an entry that has no nodes left. Ranks of an unreachable node may still be waiting. Then the
 * jobs have not ended, and a leader that sees the node again continues their incidents.
 */
static void end_entry(struct cw_leader *l, struct cw_leader_entry *entry)
{
	const char *leader = cw_election_leader(l->config.members, &entry->digests.job);
	bool is_led_elsewhere = leader && strcmp(leader, l->config.self) != 0;
	bool was_led_here = entry->is_led && !is_led_elsewhere;

	if (was_led_here && cw_job_digests_is_lost(&entry->digests)) {
		leader_log(l->config.effects, CW_LOG_NOTICE,
			   "job=%s: no digests for %lld s, no longer watched", entry->digests.label,
			   (long long)(CW_JOB_DIGESTS_FORGET_NS / CW_NS_PER_S));
		cw_postmortem_fini(&entry->postmortems, l->config.effects, true);
		was_led_here = false;
	}
	drop_entry(l, entry, was_led_here);
}

bool cw_leader_tick(struct cw_leader *l)
{
	int64_t now = cw_clock_now_ns(l->config.clock);
	int64_t awake = cw_clock_awake_ns(l->config.clock);
	struct cw_leader_entry *entry, *tmp;
	struct cw_job *job;

	/* A hold-up of this daemon has ended. */
	if (now - awake > l->evaluations.held_ns)
		l->woke_ns = awake;
	l->evaluations.held_ns = now - awake;
	l->evaluations.iteration_members = 0;
	l->evaluations.has_deferred = false;
	if (now - l->untracked_ns >= CW_NS_PER_S) {
		l->untracked_ns = now;
		cw_untracked_tick(l->untracked, now);
	}
	if (may_finish(l, now)) {
		uint32_t uid = l->evaluations.pending.entry->digests.uid;
		int64_t start = cpu_ns(l);

		cw_job_evaluation_finish(&l->evaluations);
		charge(l, uid, start, now);
	}
	HASH_SRT(hh, l->entries, by_last_evaluation);
	HASH_ITER (hh, l->entries, entry, tmp) {
		cw_job_digests_refresh(&entry->digests, l->config.effects, l->config.self,
				       l->config.clock, l->config.thresholds.node_silent_ns);
		if (entry->digests.n_nodes == 0) {
			end_entry(l, entry);
			continue;
		}
		/*
		 * The job's nodes may have another leader now. We keep the digests in case that
		 * leader is lost.
		 */
		if (entry->is_led && !cw_job_digests_is_led_here(&entry->digests) &&
		    cw_job_digests_n_reporting(&entry->digests)) {
			end_jobs(l, entry, false);
			entry->is_led = false;
		}
		if (!entry->is_led)
			continue;
		evaluate_if_due(l, entry, now);
		DL_FOREACH (entry->jobs, job)
			cw_job_incidents_tick(&job->incidents);
	}
	l->evaluations.has_deferred = l->evaluations.has_deferred || may_finish(l, now);
	return l->evaluations.has_deferred;
}

bool cw_leader_continue(struct cw_leader *l)
{
	return l->evaluations.has_deferred && cw_leader_tick(l);
}

void cw_leader_set_thresholds(struct cw_leader *l, const struct cw_thresholds *thresholds)
{
	l->config.thresholds = *thresholds;
}

void cw_leader_posted(struct cw_leader *l, uint32_t uid, const char *id, bool was_delivered)
{
	struct cw_incident *inc = find_incident(l, uid, NULL, id);

	if (inc && !was_delivered)
		cw_incident_undelivered(inc);
}

void cw_leader_retry_alerts(struct cw_leader *l)
{
	struct cw_leader_entry *entry, *tmp;
	struct cw_job *job;

	HASH_ITER (hh, l->entries, entry, tmp)
		DL_FOREACH (entry->jobs, job)
			cw_job_incidents_undelivered(&job->incidents);
}

void cw_leader_jobs(const struct cw_leader *l, cw_leader_job_fn fn, void *user)
{
	struct cw_leader_entry *entry, *tmp;
	const struct cw_job *job;

	HASH_ITER (hh, l->entries, entry, tmp)
		DL_FOREACH (entry->jobs, job)
			fn(&entry->digests, job, user);
}

int cw_leader_snapshot(struct cw_leader *l, const struct cw_job_digests *digests,
		       struct cw_job *job, struct cw_snapshot **ret)
{
	const struct cw_leader_entry *entry =
		(const void *)((const char *)digests - offsetof(struct cw_leader_entry, digests));
	_cleanup_(freep) struct cw_rank_ref *refs = NULL;
	struct cw_build build = {
		.digests = digests,
		.thresholds = l->config.thresholds,
		.now_ns = cw_clock_now_ns(l->config.clock),
		.wall_ns = cw_clock_wall_ns(l->config.clock),
		.job = job,
	};
	unsigned n_refs, n_components, kept = 0;

	if (cw_job_components(digests, &refs, &n_refs, &n_components) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < n_refs; i++)
		if (cw_process_map_job(&entry->processes, digests, &refs[i]) == job->number)
			refs[kept++] = refs[i];
	build.refs = refs;
	build.n_refs = kept;
	return kept ? cw_snapshot_build(&build, ret) : -ENOENT;
}

void cw_leader_stats(const struct cw_leader *l, struct cw_leader_stats *ret)
{
	*ret = l->stats;
	ret->untracked = cw_untracked_count(l->untracked);
	ret->untracked_dropped = cw_untracked_dropped(l->untracked);
}

const struct cw_untracked *cw_leader_untracked(const struct cw_leader *l)
{
	return l->untracked;
}
