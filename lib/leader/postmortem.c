/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As long as its nodes remember the dead ranks of a component, ten minutes, every evaluation sees
 * the component. Only the first of these evaluations still has the job, with its windows and its
 * last known wait. So we build the document then, and rebuild it when we learn of more deaths. When
 * it has settled, we write it, and only remember that we did.
 */
#include "leader/postmortem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "leader/incident/incident_journal.h"
#include "leader/postmortem_doc.h"
#include "model/death.h"
#include "model/nccl_result.h"
#include "report/cause.h"

/* Stands in place of the number of calls in the id. No real count gets this high. */
#define POSTMORTEM_SEQ UINT64_MAX

struct cw_postmortem {
	struct cw_postmortem *next, *prev;
	/*
	 * These fields identify the component: its largest communicator, and the start of its first
	 * process.
	 */
	uint64_t comm_id, start_ticks;
	uint32_t instance;
	int32_t pid;  /* pid of that process */
	bool is_seen; /* true if seen since the last sweep */
	bool is_done;
	bool has_memory;
	int64_t over_ns, changed_ns; /* first seen as over; last new death */
	unsigned n_dead;
	struct cw_postmortem_memory memory;
	struct cw_postmortem_wait
		odd_call; /* for blamed_call(): a mismatched call on which no rank waits */
	char incident[CW_INCIDENT_ID_MAX + 1];
	struct cw_postmortem_first first;
	json_t *doc; /* from the last evaluation; NULL = none, or none is due */
	char cancelled[256];
	char job[256];
	uint32_t uid, verdict_class;
};

/* ---- a living job ---- */

static bool has_failure(const struct cw_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (cw_liveness_is_dead(snap->ranks[i].liveness) &&
		    (snap->ranks[i].liveness != CW_LIVE_EXITED || snap->ranks[i].exit_code))
			return true;
	return false;
}

static void note_wait(struct cw_postmortem_wait *w, const struct cw_snapshot *snap,
		      const struct cw_verdict *v)
{
	*w = (struct cw_postmortem_wait){
		.since_ns = v->waiting_since_ns,
		.verdict_class = v->verdict_class,
		.detail = v->detail,
		.confidence = v->confidence,
		.n_culprits = v->n_culprits,
		.coll_seq = v->coll_seq,
	};
	if (v->comm < snap->n_comms) {
		w->comm_id = snap->comms[v->comm].id;
		w->instance = snap->comms[v->comm].instance;
	}
	for (uint32_t i = 0; i < v->n_culprits && i < CW_POSTMORTEM_MAX_CULPRITS; i++)
		w->culprits[i] = snap->ranks[v->culprits[i].rank].rank;
	(void)snprintf(w->summary, sizeof(w->summary), "%s", v->summary);
}

void cw_postmortem_remember(struct cw_postmortem_memory *m, const struct cw_snapshot *snap,
			    const struct cw_verdict_list *list)
{
	m->has_failed = has_failure(snap);
	if (m->has_failed)
		return;
	m->seen_ns = snap->now_ns;
	m->before.since_ns = 0;
	for (uint32_t i = 0; i < list->n; i++) {
		const struct cw_verdict *v = &list->v[i];

		if (v->verdict_class == CW_CLASS_HEALTHY || v->waiting_since_ns <= 0)
			continue;
		note_wait(&m->before, snap, v);
		return;
	}
}

/* ---- which component ---- */

bool cw_postmortem_is_over(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			   unsigned n)
{
	bool has_dead = false;

	for (unsigned i = 0; i < n; i++) {
		if (cw_liveness_is_dead(cw_job_digests_rank(digests, &refs[i])->liveness))
			has_dead = true;
		else if (digests->nodes[refs[i].node].state == CW_NODE_REPORTING)
			return false;
	}
	return has_dead;
}

static bool is_better(const struct cw_msg_member *a, const struct cw_msg_member *b)
{
	if (a->nranks != b->nranks)
		return a->nranks > b->nranks;
	if (a->comm_id != b->comm_id)
		return a->comm_id < b->comm_id;
	if (a->instance != b->instance)
		return a->instance < b->instance;
	return a->comm_rank < b->comm_rank;
}

/*
 * Takes the lowest member of the largest communicator. Without a communicator, takes the
 * lowest rank.
 */
static void identify(struct cw_postmortem *e, const struct cw_job_digests *digests,
		     const struct cw_rank_ref *refs, unsigned n)
{
	const struct cw_msg_member *best = NULL;
	const struct cw_msg_rank *lowest = NULL;

	for (unsigned i = 0; i < n; i++) {
		const struct cw_msg_rank *r = cw_job_digests_rank(digests, &refs[i]);

		for (uint32_t k = 0; k < r->n_members; k++) {
			const struct cw_msg_member *m = &r->members[k];

			if (m->comm_rank < 0 || (best && !is_better(m, best)))
				continue;
			best = m;
			e->start_ticks = r->start_ticks;
			e->pid = r->pid;
		}
		if (!lowest || r->rank < lowest->rank)
			lowest = r;
	}
	e->comm_id = best ? best->comm_id : 0;
	e->instance = best ? best->instance : 0;
	if (!best && lowest) {
		e->start_ticks = lowest->start_ticks;
		e->pid = lowest->pid;
	}
}

static unsigned count_dead(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			   unsigned n)
{
	unsigned dead = 0;

	for (unsigned i = 0; i < n; i++)
		dead += cw_liveness_is_dead(cw_job_digests_rank(digests, &refs[i])->liveness);
	return dead;
}

static bool is_of(const struct cw_postmortem *e, const struct cw_job_digests *digests,
		  const struct cw_rank_ref *refs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct cw_msg_rank *r = cw_job_digests_rank(digests, &refs[i]);

		if (r->start_ticks == e->start_ticks && r->pid == e->pid)
			return true;
	}
	return false;
}

/*
 * Finds a post-mortem by its identity, or else by any of its processes. A component of ranks
 * without a communicator grows with each rank that ends, and its identity changes.
 */
static struct cw_postmortem *find(const struct cw_postmortems *all,
				  const struct cw_postmortem *like,
				  const struct cw_job_digests *digests,
				  const struct cw_rank_ref *refs, unsigned n)
{
	struct cw_postmortem *e;

	DL_FOREACH (all->list, e)
		if (e->comm_id == like->comm_id && e->instance == like->instance &&
		    e->start_ticks == like->start_ticks)
			return e;
	DL_FOREACH (all->list, e)
		if (is_of(e, digests, refs, n))
			return e;
	return NULL;
}

/* Returns NULL if out of memory, or over the limit. We then write nothing. */
static struct cw_postmortem *find_or_add(struct cw_postmortems *all,
					 const struct cw_job_digests *digests,
					 const struct cw_rank_ref *refs, unsigned n, int64_t now_ns)
{
	struct cw_postmortem like = { .over_ns = now_ns, .changed_ns = now_ns }, *e;

	identify(&like, digests, refs, n);
	e = find(all, &like, digests, refs, n);
	if (e || all->n >= CW_POSTMORTEM_MAX_PER_JOB_KEY)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	*e = like;
	DL_APPEND(all->list, e);
	all->n++;
	return e;
}

static bool awaits_node(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (digests->nodes[refs[i].node].state != CW_NODE_REPORTING)
			return true;
	return false;
}

static int64_t due_ns(const struct cw_postmortem *e, bool is_awaiting)
{
	int64_t latest = e->over_ns + CW_POSTMORTEM_MAX_NS,
		settled = e->changed_ns + CW_POSTMORTEM_SETTLE_NS;

	return is_awaiting || settled > latest ? latest : settled;
}

bool cw_postmortem_is_due(struct cw_postmortems *all, const struct cw_job_digests *digests,
			  const struct cw_rank_ref *refs, unsigned n, int64_t now_ns)
{
	struct cw_postmortem *e = find_or_add(all, digests, refs, n, now_ns);
	unsigned dead;

	if (!e)
		return false;
	e->is_seen = true;
	if (e->is_done)
		return false;
	dead = count_dead(digests, refs, n);
	if (dead != e->n_dead) {
		e->n_dead = dead;
		e->changed_ns = now_ns;
		return true;
	}
	return now_ns >= due_ns(e, awaits_node(digests, refs, n));
}

/* ---- its deaths ---- */

static void note_members(struct cw_postmortem_death *d, const struct cw_msg_rank *r)
{
	for (uint32_t k = 0; k < r->n_members; k++) {
		const struct cw_msg_member *m = &r->members[k];

		if (m->pending)
			d->is_inside_call = true;
		if (cw_result_is_lost_peer(m->async_error ? m->async_error : m->last_result))
			d->has_lost_peer = true;
	}
	if (r->host_call)
		d->is_inside_call = true;
}

static struct cw_postmortem_death death_of(const struct cw_postmortem_input *s, uint32_t i)
{
	const struct cw_msg_rank *r = cw_job_digests_rank(s->digests, &s->refs[i]);
	struct cw_postmortem_death d = {
		.node = s->refs[i].node,
		.pid = r->pid,
		.liveness = r->liveness,
		.exit_code = r->exit_code,
		.term_signal = r->term_signal,
		.end_by = r->end_by,
		.end_sender = r->end_sender,
		.is_oom_killed = r->flags & CW_RANKF_OOM_KILLED,
		.is_shutdown = r->flags & CW_RANKF_SHUTDOWN,
		.ended_ns = s->snap->ranks[i].ended_ns,
		.unsure_ns = CW_POSTMORTEM_UNKNOWN_NS,
	};
	int64_t late_ns, spread_ns;

	cw_job_digests_node_clock(&s->digests->nodes[d.node], &late_ns, &spread_ns);
	d.ended_ns -= late_ns;
	if (spread_ns >= 0)
		d.unsure_ns = CW_POSTMORTEM_FAR_NS + spread_ns;
	note_members(&d, r);
	return d;
}

/*
 * Copies facts between the ranks of one process, because these share calls and errors. Such ranks
 * are adjacent.
 */
static void share_facts(const struct cw_postmortem_input *s, struct cw_postmortem_death *v)
{
	for (uint32_t i = 0, end; i < s->snap->n_ranks; i = end) {
		bool is_inside_call = false, has_lost_peer = false;

		for (end = i; end < s->snap->n_ranks &&
			      cw_snap_rank_shares_process(&s->snap->ranks[i], &s->snap->ranks[end]);
		     end++) {
			is_inside_call = is_inside_call || v[end].is_inside_call;
			has_lost_peer = has_lost_peer || v[end].has_lost_peer;
		}
		for (uint32_t k = i; k < end; k++) {
			v[k].is_inside_call = is_inside_call;
			v[k].has_lost_peer = has_lost_peer;
		}
	}
}

static struct cw_postmortem_death *deaths_of(const struct cw_postmortem_input *s)
{
	struct cw_postmortem_death *v = calloc((size_t)s->snap->n_ranks + 1, sizeof(*v));

	for (uint32_t i = 0; v && i < s->snap->n_ranks; i++)
		v[i] = death_of(s, i);
	if (v)
		share_facts(s, v);
	return v;
}

/* ---- blame ---- */

static bool is_waited_for(const struct cw_postmortem_wait *w, int32_t rank)
{
	for (uint32_t i = 0; i < w->n_culprits && i < CW_POSTMORTEM_MAX_CULPRITS; i++)
		if (w->culprits[i] == rank)
			return true;
	return false;
}

/* True if the rank ended itself after too long a wait, as a job's own watchdog does. */
static bool was_ended_by_waiting(const struct cw_postmortem_wait *w,
				 const struct cw_postmortem_death *d, int32_t rank)
{
	if (d->end_by != CW_END_BY_UNKNOWN && d->end_by != CW_END_BY_NOBODY &&
	    d->end_by != CW_END_BY_ITSELF)
		return false;
	if (d->liveness == CW_LIVE_KILLED && d->term_signal == SIGABRT)
		return d->is_inside_call || !is_waited_for(w, rank);
	return d->liveness == CW_LIVE_EXITED && d->exit_code && d->is_inside_call;
}

/* True if some rank died inside the same call that the remembered wait was for. */
static bool lasted_until_the_end(const struct cw_postmortem_wait *w, const struct cw_snapshot *snap)
{
	for (uint32_t c = 0; w->since_ns && c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c];

		if (comm->id != w->comm_id || comm->instance != w->instance)
			continue;
		for (uint32_t m = 0; m < comm->nranks; m++) {
			const struct cw_op *op = comm->members[m].pending;

			if (comm->members[m].rank != CW_SNAP_NONE && op && op->enter_ns &&
			    op->coll_seq == w->coll_seq &&
			    op->enter_ns <= w->since_ns + CW_POSTMORTEM_SAME_NS)
				return true;
		}
	}
	return false;
}

/*
 * True if we know the last wait of the job. Either the last evaluation was shortly before the first
 * death, or the wait lasted until then.
 */
static bool is_remembered(const struct cw_postmortem *e, const struct cw_postmortem_input *s,
			  const struct cw_postmortem_death *v)
{
	return e->has_memory &&
	       (!e->first.n_failed ||
		v[e->first.earliest].ended_ns - e->memory.seen_ns <= CW_POSTMORTEM_BLIND_NS ||
		lasted_until_the_end(&e->memory.before, s->snap));
}

/*
 * Returns the mismatched call, if the first rank to end got wrong data from it. The alert blames
 * the same call. NULL = none.
 */
static const struct cw_postmortem_wait *
blamed_call(struct cw_postmortem *e, const struct cw_postmortem_input *s, const bool *is_first)
{
	for (uint32_t i = 0; s->list && i < s->list->n; i++) {
		const struct cw_verdict *v = &s->list->v[i];

		if (!v->has_ended || !is_first[v->ended])
			continue;
		note_wait(&e->odd_call, s->snap, v);
		e->odd_call.since_ns = 0;
		return &e->odd_call;
	}
	return NULL;
}

static const struct cw_postmortem_wait *blamed(struct cw_postmortem *e,
					       const struct cw_postmortem_input *s,
					       const struct cw_postmortem_death *v,
					       const bool *is_first)
{
	const struct cw_postmortem_wait *w = &e->memory.before;
	uint32_t i = 0;

	if (!is_remembered(e, s, v) || !w->since_ns || !e->first.n_first ||
	    w->verdict_class == CW_CLASS_UNKNOWN || w->verdict_class == CW_CLASS_PROCESS_DEAD ||
	    v[e->first.earliest].ended_ns - w->since_ns < CW_POSTMORTEM_WAIT_NS)
		return blamed_call(e, s, is_first);
	while (!is_first[i])
		i++;
	return was_ended_by_waiting(w, &v[i], s->snap->ranks[i].rank) ? w
								      : blamed_call(e, s, is_first);
}

/* ---- output ---- */

static void finish(struct cw_postmortem *e)
{
	e->is_done = true;
	json_decref(e->doc);
	e->doc = NULL;
}

static void log_postmortem(const struct cw_postmortem *pm, const struct cw_leader_effects *e)
{
	const char *summary = json_string_value(json_object_get(pm->doc, "summary"));
	const char *id_text = json_string_value(json_object_get(pm->doc, "id"));
	char text[1536], id[128], job[288], verdict_class[64], uid[64];
	const char *fields[] = { id, job, verdict_class, uid, NULL };

	if (!e->event)
		return;
	(void)snprintf(text, sizeof(text), "job=%s inc=%s: post-mortem: %s (collwatch report %s)",
		       pm->job, id_text, summary, id_text);
	(void)snprintf(id, sizeof(id), "COLLWATCH_INCIDENT=%s", id_text);
	(void)snprintf(job, sizeof(job), "COLLWATCH_JOB=%s", pm->job);
	(void)snprintf(verdict_class, sizeof(verdict_class), "COLLWATCH_CLASS=%s",
		       cw_class_name(pm->verdict_class));
	(void)snprintf(uid, sizeof(uid), "COLLWATCH_UID=%u", pm->uid);
	e->event(e->user, CW_LOG_NOTICE, CW_MESSAGE_ID_POSTMORTEM, text, fields);
}

static void put_postmortem(struct cw_postmortem *pm, const struct cw_leader_effects *e)
{
	const struct cw_incident_due due = {
		.id = json_string_value(json_object_get(pm->doc, "id")),
		.job = pm->job,
		.uid = pm->uid,
		.verdict_class = pm->verdict_class,
	};
	int r = 0;

	/*
	 * If an alert of the job was sent, the user finds the post-mortem with it, and we send no
	 * other.
	 */
	if (e->put_postmortem)
		r = e->put_postmortem(e->user, &due, pm->doc, !*pm->incident);
	if (r == -EEXIST) {
		leader_log(e, CW_LOG_DEBUG, "inc=%s: its post-mortem is there already", due.id);
	} else {
		if (r < 0)
			leader_log(e, CW_LOG_WARN, "inc=%s: its post-mortem cannot be kept: %s",
				   due.id, strerror(-r));
		log_postmortem(pm, e);
	}
	finish(pm);
}

static void conclude(struct cw_postmortem *pm, const struct cw_leader_effects *e)
{
	if (pm->doc) {
		put_postmortem(pm, e);
		return;
	}
	if (pm->first.outcome == CW_POSTMORTEM_CANCELLED)
		leader_log(e, CW_LOG_NOTICE, "job=%s: cancelled: %s", pm->job, pm->cancelled);
	finish(pm);
}

/* ---- evaluation ---- */

static void say_cancelled(struct cw_postmortem *e, const struct cw_postmortem_input *s,
			  const struct cw_postmortem_death *v)
{
	const struct cw_snap_rank *r = &s->snap->ranks[e->first.earliest];
	char how[96];

	cw_postmortem_format_end(&v[e->first.earliest], how, sizeof(how));
	(void)snprintf(e->cancelled, sizeof(e->cancelled), "rank %d %s%s", r->rank,
		       cw_cause_verb(r->cause), r->cause && *r->cause ? r->cause : how);
}

static bool has_unalerted_wrong_data(const struct cw_postmortem_input *s)
{
	for (uint32_t i = 0; s->list && i < s->list->n; i++)
		if (cw_postmortem_is_wrong_data(&s->list->v[i]) && !(s->alerted & 1u << i))
			return true;
	return false;
}

/*
 * True if the ranks are of several processes. A single process is no job, because its parent sees
 * how it ended.
 */
static bool is_a_job(const struct cw_snapshot *snap)
{
	for (uint32_t i = 1; i < snap->n_ranks; i++)
		if (!cw_snap_rank_shares_process(&snap->ranks[0], &snap->ranks[i]))
			return true;
	return snap->ranks_expected > 1 && snap->ranks_expected > snap->n_ranks;
}

/* Copies the facts that only the first evaluation has, unless the new document contradicts them. */
static void take_over(json_t *doc, const json_t *old)
{
	if (old && json_equal(json_object_get(doc, "first"), json_object_get(old, "first")))
		(void)json_object_set(doc, "last_calls", json_object_get(old, "last_calls"));
	if (json_array_size(json_object_get(old, "wrong_data")))
		(void)json_object_set(doc, "wrong_data", json_object_get(old, "wrong_data"));
}

static int make_doc(struct cw_postmortem *e, const struct cw_postmortem_input *s,
		    const struct cw_postmortem_death *v, const bool *is_first)
{
	struct cw_postmortem_input input = *s;
	struct cw_postmortem_facts f = {
		.input = &input,
		.deaths = v,
		.is_first = is_first,
		.first = &e->first,
		.blamed = blamed(e, s, v, is_first),
	};
	const struct cw_incident_matter matter = {
		.uid = s->uid,
		.job = e->job,
		.key = { .comm_id = e->comm_id,
			 .instance = e->instance,
			 .seq = POSTMORTEM_SEQ,
			 .is_set = true },
		.start_ticks = e->start_ticks,
	};
	char id[CW_INCIDENT_ID_LEN];
	json_t *doc;

	if (cw_incident_id_make(&matter, id) < 0)
		return -ENOMEM;
	input.memory = is_remembered(e, s, v) ? &e->memory : NULL;
	input.incident = e->incident;
	f.id = *e->incident ? e->incident : id;
	doc = cw_postmortem_doc(&f);
	if (!doc)
		return -ENOMEM;
	take_over(doc, e->doc);
	json_decref(e->doc);
	e->doc = doc;
	e->verdict_class = (uint32_t)cw_class_from_name(
		json_string_value(json_object_get(doc, "class"))); /* a name that we wrote */
	return 0;
}

static int64_t newest_death_ns(const struct cw_snapshot *snap)
{
	int64_t newest = 0;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].ended_ns > newest)
			newest = snap->ranks[i].ended_ns;
	return newest;
}

static int update(struct cw_postmortem *e, const struct cw_postmortem_input *s)
{
	_cleanup_(freep) struct cw_postmortem_death *v = deaths_of(s);
	_cleanup_(freep) bool *is_first = calloc((size_t)s->snap->n_ranks + 1, sizeof(*is_first));

	if (!v || !is_first)
		return -ENOMEM;
	cw_postmortem_order(v, s->snap->n_ranks, is_first, &e->first);
	if (e->first.outcome == CW_POSTMORTEM_CANCELLED)
		say_cancelled(e, s, v);
	if (e->first.outcome == CW_POSTMORTEM_FAILED || has_unalerted_wrong_data(s))
		return make_doc(e, s, v, is_first);
	if (e->first.outcome == CW_POSTMORTEM_CANCELLED && e->doc) {
		json_decref(e->doc); /* after all reports: it was no failure */
		e->doc = NULL;
	}
	return 0;
}

static void begin(struct cw_postmortem *e, const struct cw_postmortem_input *s)
{
	e->uid = s->uid;
	(void)snprintf(e->job, sizeof(e->job), "%s", s->snap->job ? s->snap->job : "");
	if (s->memory) {
		e->memory = *s->memory;
		e->has_memory = true;
	}
}

void cw_postmortem_evaluate(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			    const struct cw_postmortem_input *s)
{
	struct cw_postmortem like = { 0 }, *e;

	identify(&like, s->digests, s->refs, s->snap->n_ranks);
	e = find(all, &like, s->digests, s->refs, s->snap->n_ranks);
	if (!e || e->is_done)
		return;
	if (!*e->job)
		begin(e, s);
	if (!*e->incident) /* a later evaluation may find an alert from before a restart */
		(void)snprintf(e->incident, sizeof(e->incident), "%s", s->incident);
	if (!is_a_job(s->snap) ||
	    (!e->has_memory && s->snap->now_ns - newest_death_ns(s->snap) > CW_POSTMORTEM_OLD_NS)) {
		finish(e);
		return;
	}
	if (!e->has_memory && s->is_partitioned)
		return;
	if (update(e, s) < 0) {
		leader_log(effects, CW_LOG_ERR, "job=%s: out of memory for its post-mortem",
			   e->job);
		return; /* the old document stays */
	}
	cw_leader_effects_name_user(effects, e->uid, e->doc);
	if (e->first.outcome == CW_POSTMORTEM_HEALTHY && !e->doc)
		finish(e);
	else if (s->snap->now_ns >= due_ns(e, awaits_node(s->digests, s->refs, s->snap->n_ranks)))
		conclude(e, effects);
}

static void forget(struct cw_postmortems *all, struct cw_postmortem *e)
{
	DL_DELETE(all->list, e);
	all->n--;
	json_decref(e->doc);
	free(e);
}

void cw_postmortem_sweep(struct cw_postmortems *all)
{
	struct cw_postmortem *e, *tmp;

	DL_FOREACH_SAFE (all->list, e, tmp) {
		/*
		 * Keep a pending post-mortem, because its ranks may now be in one component with
		 * new ranks.
		 */
		if (!e->is_seen && e->is_done)
			forget(all, e);
		else
			e->is_seen = false;
	}
}

void cw_postmortem_fini(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			bool was_led_here)
{
	struct cw_postmortem *e, *tmp;

	DL_FOREACH_SAFE (all->list, e, tmp) {
		if (was_led_here && !e->is_done)
			conclude(e, effects);
		forget(all, e);
	}
}
