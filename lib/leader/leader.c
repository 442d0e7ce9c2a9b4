/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of jobs, messages between leaders, and scheduling of evaluations. The evaluation of a
 * job is in job_look.c.
 *
 * A digest creates or renews a route, and its sender gets an answer. If the leader is at its limit,
 * the sender asks the next node. We do not read copies until their leader is lost. If two nodes
 * both think they lead, a third node lets the first one speak. We charge the CPU time of
 * evaluations to the user of the jobs.
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
#include "identity/shares.h"
#include "identity/uid_count.h"
#include "identity/untracked.h"
#include "leader/job_look.h"
#include "leader/snapshot_build.h"

/* Reason in an objection; the announcing node recognizes it by this text. */
#define ANNOUNCED_FIRST "another node announced it first"

/* A node that announced an incident of a job; remembered for CW_LEADER_ANNOUNCED_NS. */
struct cw_announced {
	struct cw_job_id job;
	int64_t at_ns; /* awake; 0 = unused */
	char node[64];
	bool led_here; /* this node reported to it at that time */
};

struct cw_leader {
	struct cw_leader_config config;
	struct cw_led_route *routes;
	struct cw_uid_count *held; /* routes of each user */
	struct cw_untracked *untracked;
	int64_t untracked_ns; /* time of its last tick */
	struct cw_job_looks looks;
	/*
	 * CPU time of evaluations and text since spent_since_ns: beyond CW_LEADER_TEXT_NS we write
	 * no more text.
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
		.why = "this node leads as many as it has places for",
		.keep_ns = CW_LEADER_UNTRACKED_KEEP_NS,
		.log = log_untracked,
		.user = l,
	};

	if (!l)
		return -ENOMEM;
	l->config = *config;
	l->looks.config = &l->config;
	l->looks.stats = &l->stats;
	if (cw_untracked_new(&untracked, &l->untracked) < 0) {
		(void)cw_leader_free(l); /* always NULL */
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

static void end_jobs(struct cw_leader *l, struct cw_led_route *lr, bool was_led_here)
{
	struct cw_job *job, *tmp;

	cw_epitaph_fini(&lr->epitaphs, l->config.effects, was_led_here);
	DL_FOREACH_SAFE (lr->jobs, job, tmp)
		cw_job_look_end(&l->looks, lr, job, was_led_here);
}

static void drop_route(struct cw_leader *l, struct cw_led_route *lr, bool was_led_here)
{
	end_jobs(l, lr, was_led_here);
	HASH_DEL(l->routes, lr);
	cw_uid_count_remove(&l->held, lr->route.uid);
	l->stats.routes--;
	if (!l->stats.routes)
		l->looks.spare = cw_snapshot_free(l->looks.spare);
	cw_process_map_fini(&lr->processes);
	free(lr->refs);
	cw_route_fini(&lr->route);
	free(lr);
}

struct cw_leader *cw_leader_free(struct cw_leader *l)
{
	struct cw_led_route *lr, *tmp;

	if (!l)
		return NULL;
	HASH_ITER (hh, l->routes, lr, tmp)
		drop_route(l, lr, false);
	(void)cw_untracked_free(l->untracked); /* always NULL */
	free(l);
	return NULL;
}

/* ---- routes ---- */

static struct cw_led_route *find_route(const struct cw_leader *l, const struct cw_job_id *job)
{
	struct cw_led_route *lr;

	HASH_FIND_BYHASHVALUE(hh, l->routes, job, sizeof(*job), cw_job_id_bucket(job), lr);
	return lr;
}

static bool has_incident(const struct cw_led_route *lr)
{
	const struct cw_job *job;

	DL_FOREACH (lr->jobs, job)
		if (*cw_job_incidents_id(&job->incidents))
			return true;
	return false;
}

static void note_untracked(struct cw_leader *l, uint32_t uid, const char *label)
{
	const struct cw_untracked_item item = { .uid = uid, .label = label };

	cw_untracked_note(l->untracked, &item, -1, cw_clock_now_ns(l->config.clock));
}

static void forget_untracked(struct cw_leader *l, const struct cw_route *route)
{
	const struct cw_untracked_item item = { .uid = route->uid, .label = route->label };

	cw_untracked_forget(l->untracked, &item);
}

/* Copies yield to routes that this node leads, and displace other copies only. */
static struct cw_led_route *find_displaced(const struct cw_leader *l, uint32_t users, bool for_copy)
{
	_cleanup_(freep) struct cw_share_place *places = calloc(l->stats.routes, sizeof(*places));
	struct cw_led_route *lr, *tmp;
	size_t n = 0;

	if (!places)
		return NULL;
	HASH_ITER (hh, l->routes, lr, tmp)
		places[n++] = (struct cw_share_place){
			.uid = lr->route.uid,
			.is_pinned = lr->is_led && (for_copy || has_incident(lr)),
			.since_ns = lr->is_led ? lr->since_ns : INT64_MAX,
			.holder = lr,
		};
	return cw_share_displaced(places, n, CW_LEADER_MAX_ROUTES, users);
}

/* False: the limit is reached and no route yields. */
static bool make_room(struct cw_leader *l, uint32_t uid, bool for_copy)
{
	const struct cw_share_count count = {
		.capacity = CW_LEADER_MAX_ROUTES,
		.taken = l->stats.routes,
		.users = cw_uid_count_users(l->held, uid),
		.own = cw_uid_count_get(l->held, uid),
	};
	enum cw_share_answer answer = cw_share_ask(&count);
	struct cw_led_route *displaced;

	if (answer != CW_SHARE_DISPLACE)
		return answer == CW_SHARE_ADMIT;
	displaced = find_displaced(l, count.users, for_copy);
	if (!displaced)
		return false;
	if (displaced->is_led)
		note_untracked(l, displaced->route.uid, displaced->route.label);
	drop_route(l, displaced, false);
	l->stats.displaced++;
	return true;
}

/* All routes of a user share one budget; a new route brings none of its own. */
static int64_t not_before_of(const struct cw_leader *l, uint32_t uid)
{
	struct cw_led_route *lr, *tmp;

	HASH_ITER (hh, l->routes, lr, tmp)
		if (lr->route.uid == uid)
			return lr->not_before_ns;
	return 0;
}

static struct cw_led_route *add_route(struct cw_leader *l, const struct cw_msg_digest *d)
{
	struct cw_led_route *lr = calloc(1, sizeof(*lr));

	if (!lr || cw_uid_count_add(&l->held, d->uid) < 0) {
		free(lr);
		return NULL;
	}
	lr->since_ns = cw_clock_now_ns(l->config.clock);
	lr->not_before_ns = not_before_of(l, d->uid);
	if (cw_route_init(&lr->route, d) == 0)
		HASH_ADD_BYHASHVALUE(hh, l->routes, route.job, sizeof(lr->route.job),
				     cw_job_id_bucket(&lr->route.job), lr);
	if (!lr->route.label || !cw_htable_added(lr)) {
		cw_uid_count_remove(&l->held, d->uid);
		cw_route_fini(&lr->route);
		free(lr);
		return NULL;
	}
	l->stats.routes++;
	return lr;
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
		leader_log(l->config.effects, CW_LOG_DEBUG, "%s gets no answer to its digest: %s",
			   to, strerror(-r));
}

/* route: the number by which `to` knows the job, perhaps its only name for it. */
static void answer(struct cw_leader *l, const struct cw_led_route *lr, const char *to,
		   uint64_t number, uint64_t route)
{
	const char *names[CW_LEADER_MAX_NAMED];
	uint32_t n_names = lr->route.n_nodes <= CW_LEADER_MAX_NAMED ? lr->route.n_nodes : 0;

	for (uint32_t i = 0; i < n_names; i++)
		names[i] = lr->route.nodes[i].name;
	send_members(l, to, &lr->route.job,
		     &(struct cw_msg_members){ .route = route,
					       .number = number,
					       .nodes = names,
					       .n_nodes = n_names,
					       .n_nodes_in_all = lr->route.n_nodes,
					       .standing = has_incident(lr)
								   ? CW_STANDING_INCIDENT
								   : CW_STANDING_WATCHED });
}

/* The refused node shows this in its status, and tries the next leader. */
static void refuse_route(struct cw_leader *l, const struct cw_job_id *job,
			 const struct cw_msg_digest *d, const char *to)
{
	l->stats.refused_digests++;
	note_untracked(l, d->uid, d->label);
	send_members(l, to, job,
		     &(struct cw_msg_members){ .route = d->route,
					       .number = d->number,
					       .n_nodes_in_all = 1,
					       .standing = CW_STANDING_NO_PLACE });
}

/*
 * Passes on a mute that a user typed on another node. We ignore the mute in a refused digest: its
 * sender appears nowhere as a node of the job, and would silence the job unseen.
 */
static void tell_muted(const struct cw_leader *l, const char *from, const struct cw_msg_digest *d)
{
	const struct cw_leader_effects *e = l->config.effects;

	if (e->muted && d->n_ranks && strcmp(from, l->config.self) != 0)
		e->muted(e->user, from, d->uid, d->label, d->muted_until_ns);
}

/* *ret NULL: this node does not lead the job yet. Otherwise as cw_job_id_read(). */
static int find_digest_route(const struct cw_leader *l, const struct cw_msg_digest *d,
			     struct cw_job_id *ret_job, struct cw_led_route **ret)
{
	int r;

	*ret = NULL;
	if (cw_job_id_claimed(&d->job_key, d->uid, d->label, ret_job))
		*ret = find_route(l, ret_job);
	if (*ret)
		return 0;
	r = cw_job_id_read(&d->job_key, d->uid, d->label, ret_job);
	if (r == 0)
		*ret = find_route(l, ret_job); /* from the previous version: without a key */
	return r;
}

static void take_digest(struct cw_leader *l, const char *from, struct cw_message **msg)
{
	const struct cw_msg_digest *d = &(*msg)->digest;
	struct cw_led_route *lr = NULL;
	int64_t now = cw_clock_now_ns(l->config.clock);
	bool is_copy = (*msg)->type == CW_MSG_DIGEST_COPY, is_urgent = false;
	uint64_t number = d->number, route = d->route;
	struct cw_job_id job;

	/* A digest must be about its sender and must name its job. */
	if (strcmp(d->node, from) != 0 || find_digest_route(l, d, &job, &lr) != 0) {
		l->stats.refused_digests++;
		return;
	}
	if (!lr && d->n_ranks == 0) {
		/*
		 * There is nothing to watch, but without an answer the node would look for
		 * another leader.
		 */
		if (d->untracked && !is_copy)
			send_members(l, from, &job,
				     &(struct cw_msg_members){ .route = route, .number = number });
		return;
	}
	if (!lr && !make_room(l, d->uid, is_copy)) {
		if (is_copy)
			l->stats.refused_digests++;
		else
			refuse_route(l, &job, d, from);
		return;
	}
	if (!lr)
		lr = add_route(l, d);
	if (!lr || cw_route_put(&lr->route, from, msg, l->config.clock, &is_urgent) < 0) {
		l->stats.refused_digests++;
		return;
	}
	if (is_copy) {
		/*
		 * We use no ranks of routes that we do not lead. A route that we lead has few
		 * copies: digests of nodes with another leader.
		 */
		if (lr->is_led)
			(void)cw_route_read(&lr->route, CW_LEADER_TURN_COPIES);
		return;
	}
	if (is_urgent || !lr->is_led)
		lr->next_ns = now;
	if (!lr->is_led)
		forget_untracked(l, &lr->route);
	lr->is_led = true;
	tell_muted(l, from, d); /* the route owns the message now */
	answer(l, lr, from, number, route);
}

/* Searches this user's incidents only: an id alone belongs to no user. */
/* label: of the incident's job; NULL = any job of this user. */
static struct cw_incident *find_incident(const struct cw_leader *l, uint32_t uid, const char *label,
					 const char *id)
{
	struct cw_led_route *lr, *tmp;
	struct cw_job *job;

	HASH_ITER (hh, l->routes, lr, tmp) {
		if (lr->route.uid != uid || (label && strcmp(lr->route.label, label) != 0))
			continue;
		DL_FOREACH (lr->jobs, job) {
			struct cw_incident *inc = cw_job_incidents_find(&job->incidents, id);

			if (inc)
				return inc;
		}
	}
	return NULL;
}

static bool has_alerted(const struct cw_leader *l, const struct cw_msg_incident_announce *a)
{
	const struct cw_incident_due due = { .id = a->id, .job = a->label, .uid = a->uid };
	const struct cw_incident *inc;

	if (!*a->label)
		return false; /* the owner is missing: an id alone belongs to no user */
	inc = find_incident(l, a->uid, a->label, a->id);
	return (inc && cw_incident_state(inc) == CW_INCIDENT_ALERTED) ||
	       l->config.effects->was_sent_here(l->config.effects->user, &due);
}

/* This node leads the job and gets digests of more nodes than its own. */
static bool leads_better(const struct cw_leader *l, const struct cw_job_id *job, const char *from)
{
	const char *self = l->config.self;
	const char *leader = cw_election_leader(l->config.members, job);
	const struct cw_led_route *lr = find_route(l, job);

	if (!leader || strcmp(leader, self) != 0 || !lr || cw_route_n_reporting(&lr->route) < 2)
		return false;
	for (unsigned i = 0; i < lr->route.n_nodes; i++)
		if (!strcmp(lr->route.nodes[i].name, from))
			return true; /* the announcer reports to this node */
	return false;
}

static bool is_led_by(const struct cw_leader *l, const struct cw_job_id *job, const char *node)
{
	const char *leader = cw_election_leader(l->config.members, job);

	return leader && !strcmp(leader, node);
}

/*
 * Where some links are cut, two nodes may each think they lead. A third node that has contact with
 * both lets the first one speak, as long as that one is alive.
 *
 * There are two exceptions, both only if this node now reports to the second one. If this node
 * reported to the first when that announced, the first stood in for a daemon that was held up. It
 * no longer leads, and will not speak. Otherwise the first was giving way while it announced: this
 * node already reported to the second. If the first has not alerted after CW_LEADER_SPEAKS_NS, it
 * never will.
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

/* True if a node that has since become unreachable announced an incident of the job. */
static bool is_announced_elsewhere(const struct cw_leader *l, const struct cw_job_id *job)
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
	const char *reason = NULL;
	struct cw_job_id job;
	int r = cw_job_id_read(&a->job_key, a->uid, a->label, &job);

	l->stats.announcements++;
	if (r != 0)
		l->stats.unnamed++;
	if (has_alerted(l, a))
		reason = "the alert went out from here";
	else if (r == 0 && leads_better(l, &job, from))
		reason = "this node leads the job";
	else if (r == 0 && was_announced_by_another(l, &job, from))
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

/*
 * Objections of older versions do not name the job. But those nodes only know ids that this
 * node announced.
 */
static struct cw_incident *find_objected(const struct cw_leader *l,
					 const struct cw_msg_incident_objection *o)
{
	struct cw_led_route *lr, *tmp;
	struct cw_incident *inc = NULL;

	if (*o->label)
		return find_incident(l, o->uid, o->label, o->id);
	HASH_ITER (hh, l->routes, lr, tmp) {
		if (!inc)
			inc = find_incident(l, lr->route.uid, NULL, o->id);
	}
	return inc;
}

/* The node leads the job as far as this node knows, or did so while this node was away. */
static bool is_party(const struct cw_leader *l, const struct cw_job_id *job, const char *node)
{
	return is_led_by(l, job, node) || cw_election_is_deputy(l->config.members, job, node);
}

/*
 * How often an objection may defer an incident; 0 = without limit. "Another node announced it" is
 * no knowledge of the objecting node: any node can announce.
 */
static unsigned believed_times(const struct cw_leader *l, const char *from,
			       const struct cw_msg_incident_objection *o)
{
	struct cw_job_id job;

	if (!*o->label || cw_job_id_make(o->uid, o->label, &job) < 0)
		return CW_INCIDENT_MAX_DEFERRED;
	if (strcmp(o->reason, ANNOUNCED_FIRST) != 0 && is_party(l, &job, from))
		return 0;
	return cw_election_is_stand_in(l->config.members, &job) ? CW_INCIDENT_MAX_DEFERRED_APART
								: CW_INCIDENT_MAX_DEFERRED;
}

static void take_objection(struct cw_leader *l, const char *from,
			   const struct cw_msg_incident_objection *o)
{
	struct cw_incident *inc = find_objected(l, o);

	l->stats.objections++;
	if (inc && !cw_incident_object(inc, from, o->reason, believed_times(l, from, o)))
		l->stats.overruled++;
}

bool cw_leader_has_open(const struct cw_leader *l, uint32_t uid, const char *id)
{
	const struct cw_incident *inc = find_incident(l, uid, NULL, id);

	return inc && cw_incident_is_open(inc);
}

bool cw_leader_has_part(const struct cw_leader *l, const struct cw_job_id *job, const char *node)
{
	const struct cw_led_route *lr = find_route(l, job);

	return (lr && cw_route_has_ranks_of(&lr->route, node)) ||
	       cw_election_has_part(l->config.members, job, node);
}

bool cw_leader_doubts(struct cw_leader *l, const char *from, uint32_t uid, const char *label,
		      const char *id)
{
	const struct cw_incident *inc = find_incident(l, uid, NULL, id);
	const struct cw_led_route *lr;
	struct cw_job_id job;
	bool is_believed;

	/*
	 * We believe a claim for the job that it names, but not if we know that the id is
	 * another job's.
	 */
	if (cw_job_id_make(uid, label, &job) < 0 ||
	    (inc && inc != find_incident(l, uid, label, id))) {
		l->stats.doubted++;
		return true;
	}
	lr = find_route(l, &job);
	if (lr && lr->is_led)
		is_believed = is_party(l, &job, from);
	else
		is_believed = cw_leader_has_part(l, &job, from) ||
			      cw_election_leads_before(l->config.members, &job, from);
	l->stats.doubted += !is_believed;
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

/* Charges CPU time since `start` to all routes of the user. */
static void charge(struct cw_leader *l, uint32_t uid, int64_t start, int64_t now)
{
	int64_t cost = cpu_ns(l) - start;
	struct cw_led_route *lr, *tmp;

	l->spent_ns += cost;
	if (cost < CW_LEADER_CHEAP_LOOK_NS)
		return;
	HASH_ITER (hh, l->routes, lr, tmp) {
		if (lr->route.uid != uid)
			continue;
		if (lr->not_before_ns < now)
			lr->not_before_ns = now;
		lr->not_before_ns += (CW_LEADER_LOOK_SHARE - 1) * cost;
	}
}

static void look(struct cw_leader *l, struct cw_led_route *lr, int64_t now)
{
	int64_t start = cpu_ns(l);

	lr->next_ns = now + CW_LEADER_LOOK_NS;
	lr->looked_ns = now;
	lr->is_announced_elsewhere = is_announced_elsewhere(l, &lr->route.job);
	cw_job_look(&l->looks, lr, now);
	charge(l, lr->route.uid, start, now);
}

/* True if a pending evaluation may continue within its budget. */
static bool may_finish(struct cw_leader *l, int64_t now)
{
	if (now - l->spent_since_ns >= CW_LEADER_TEXT_EVERY_NS) {
		l->spent_since_ns = now;
		l->spent_ns = 0;
	}
	return l->looks.half.snap && (!l->looks.half.is_judged || l->spent_ns < CW_LEADER_TEXT_NS);
}

static void finish_look(struct cw_leader *l, int64_t now)
{
	uint32_t uid;
	int64_t start;

	if (!may_finish(l, now))
		return;
	uid = l->looks.half.lr->route.uid;
	start = cpu_ns(l);
	cw_job_look_finish(&l->looks);
	charge(l, uid, start, now);
}

/* Sorts the route with the oldest evaluation first. */
static int by_last_look(const struct cw_led_route *a, const struct cw_led_route *b)
{
	return (a->looked_ns > b->looked_ns) - (a->looked_ns < b->looked_ns);
}

static bool is_led_elsewhere(const struct cw_leader *l, const struct cw_job_id *job)
{
	const char *leader = cw_election_leader(l->config.members, job);

	return leader && strcmp(leader, l->config.self) != 0;
}

/* The route's nodes have another leader now. We keep the digests in case that leader is lost. */
static void update_leadership(struct cw_leader *l, struct cw_led_route *lr)
{
	if (!lr->is_led || cw_route_is_led_here(&lr->route) ||
	    cw_route_n_reporting(&lr->route) == 0)
		return;
	end_jobs(l, lr, false);
	lr->is_led = false;
}

/* Notes when this daemon resumes after a hold-up. Returns the time. */
static int64_t note_time(struct cw_leader *l)
{
	int64_t now = cw_clock_now_ns(l->config.clock);
	int64_t awake = cw_clock_awake_ns(l->config.clock);

	if (now - awake > l->looks.held_ns)
		l->woke_ns = awake;
	l->looks.held_ns = now - awake;
	return now;
}

/*
 * After a hold-up, this daemon's digests are old. The evaluation waits until the job's nodes have
 * sent new ones, or are late with them.
 */
static bool is_out_of_date(const struct cw_leader *l, const struct cw_led_route *lr)
{
	return l->woke_ns && cw_clock_awake_ns(l->config.clock) - l->woke_ns < CW_ROUTE_GONE_NS &&
	       cw_route_awaits(&lr->route, l->woke_ns);
}

/* Evaluates the route if it is due, within the limits of one iteration. */
static void look_if_due(struct cw_leader *l, struct cw_led_route *lr, int64_t now)
{
	struct cw_job *job;

	DL_FOREACH (lr->jobs, job) {
		if (job->is_due)
			lr->next_ns = now;
		job->is_due = false;
	}
	if (now < lr->next_ns || now < lr->not_before_ns || is_out_of_date(l, lr))
		return;
	if (l->looks.turn_members >= cw_job_look_turn_members(&l->looks) ||
	    !cw_route_read(&lr->route, CW_LEADER_TURN_COPIES))
		l->looks.has_deferred = true;
	else
		look(l, lr, now);
}

/*
 * The route has no nodes left. Ranks of an unreachable node may still be waiting. In that case its
 * jobs have not ended, and a leader that sees the node again continues its incidents.
 */
static void end_route(struct cw_leader *l, struct cw_led_route *lr)
{
	bool was_led_here = lr->is_led && !is_led_elsewhere(l, &lr->route.job);

	if (was_led_here && cw_route_is_lost(&lr->route)) {
		leader_log(l->config.effects, CW_LOG_NOTICE,
			   "job=%s: not heard of for %lld s, no longer watched", lr->route.label,
			   (long long)(CW_ROUTE_FORGET_NS / CW_NS_PER_S));
		cw_epitaph_fini(&lr->epitaphs, l->config.effects, true);
		was_led_here = false;
	}
	drop_route(l, lr, was_led_here);
}

bool cw_leader_tick(struct cw_leader *l)
{
	int64_t now = note_time(l);
	struct cw_led_route *lr, *tmp;
	struct cw_job *job;

	l->looks.turn_members = 0;
	l->looks.has_deferred = false;
	if (now - l->untracked_ns >= CW_NS_PER_S) {
		l->untracked_ns = now;
		cw_untracked_tick(l->untracked, now);
	}
	finish_look(l, now);
	HASH_SRT(hh, l->routes, by_last_look);
	HASH_ITER (hh, l->routes, lr, tmp) {
		cw_route_refresh(&lr->route, l->config.effects, l->config.self, l->config.clock,
				 l->config.thresholds.node_silent_ns);
		if (lr->route.n_nodes == 0) {
			end_route(l, lr);
			continue;
		}
		update_leadership(l, lr);
		if (!lr->is_led)
			continue;
		look_if_due(l, lr, now);
		DL_FOREACH (lr->jobs, job)
			cw_job_incidents_tick(&job->incidents);
	}
	l->looks.has_deferred = l->looks.has_deferred || may_finish(l, now);
	return l->looks.has_deferred;
}

bool cw_leader_continue(struct cw_leader *l)
{
	return l->looks.has_deferred && cw_leader_tick(l);
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

const char *cw_leader_old_id(const struct cw_leader *l, uint32_t uid, const char *id)
{
	const struct cw_incident *inc = find_incident(l, uid, NULL, id);

	return inc ? cw_incident_old_id(inc) : "";
}

void cw_leader_retry_alerts(struct cw_leader *l)
{
	struct cw_led_route *lr, *tmp;
	struct cw_job *job;

	HASH_ITER (hh, l->routes, lr, tmp)
		DL_FOREACH (lr->jobs, job)
			cw_job_incidents_undelivered(&job->incidents);
}

void cw_leader_jobs(const struct cw_leader *l, cw_leader_job_fn fn, void *user)
{
	struct cw_led_route *lr, *tmp;
	const struct cw_job *job;

	HASH_ITER (hh, l->routes, lr, tmp)
		DL_FOREACH (lr->jobs, job)
			fn(&lr->route, job, user);
}

int cw_leader_snapshot(struct cw_leader *l, const struct cw_route *route, struct cw_job *job,
		       struct cw_snapshot **ret)
{
	const struct cw_led_route *lr =
		(const void *)((const char *)route - offsetof(struct cw_led_route, route));
	_cleanup_(freep) struct cw_rank_ref *refs = NULL;
	struct cw_build build = {
		.route = route,
		.thresholds = l->config.thresholds,
		.now_ns = cw_clock_now_ns(l->config.clock),
		.wall_ns = cw_clock_wall_ns(l->config.clock),
		.job = job,
	};
	unsigned n_refs, n_components, kept = 0;

	if (cw_job_components(route, &refs, &n_refs, &n_components) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < n_refs; i++)
		if (cw_process_map_job(&lr->processes, route, &refs[i]) == job->number)
			refs[kept++] = refs[i];
	build.refs = refs;
	build.n_refs = kept;
	return kept ? cw_snapshot_build(&build, ret) : -ENOENT;
}

void cw_leader_stats(const struct cw_leader *l, struct cw_leader_stats *ret)
{
	*ret = l->stats;
	ret->untracked = cw_untracked_count(l->untracked);
}

const struct cw_untracked *cw_leader_untracked(const struct cw_leader *l)
{
	return l->untracked;
}
