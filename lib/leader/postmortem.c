/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes remember the dead ranks of a component for ten minutes, and every evaluation in that
 * time sees the component. Only the first of these evaluations still has the job, with its windows
 * and its last known wait. So we build the document then, and rebuild it when we learn of more
 * deaths. When the document has settled, we write it. After that we only remember that we wrote it.
 */
#include "leader/postmortem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "identity/job_id.h"
#include "leader/incident/evidence_set.h"
#include "leader/incident/incident.h"
#include "leader/incident/incident_journal.h"
#include "leader/postmortem_doc.h"
#include "model/cause.h"
#include "model/death.h"
#include "model/nccl_result.h"
#include "proto/messages.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/doc/said_doc.h"
#include "say/english.h"

/* The number of calls in the id of a post-mortem. No real number gets this high. */
#define POSTMORTEM_SEQ UINT64_MAX

struct cw_postmortem {
	struct cw_postmortem *next, *prev;
	/*
	 * The identity of the component: its largest communicator, and the start of its first
	 * process.
	 */
	uint64_t comm_id, start_ticks;
	uint32_t instance;
	/* Pid of the component's first process. */
	int32_t pid;
	bool is_seen; /* seen since the last sweep */
	bool is_done;
	bool has_memory;
	/* Time at which the job was first seen as over; time of the last new death. */
	int64_t over_ns, changed_ns;
	unsigned n_dead;
	struct cw_postmortem_memory memory;
	struct cw_postmortem_wait
		/* For blamed_call(): a mismatched call that no rank waits in. */
		odd_call;
	char incident[CW_INCIDENT_ID_MAX + 1];
	struct cw_postmortem_first first;
	/* Document of the last evaluation; NULL = none, or none is due. */
	json_t *doc;
	char cancelled[256];
	char job[256];
	uint32_t uid, verdict_class;
	/* Evidence about the crash of the first ranks; NULL effects = not requested. */
	const struct cw_leader_effects *effects;
	struct cw_evidence_set evidence;
	struct cw_job_id job_id;
};

/* ---- a living job ---- */

static void note_wait(struct cw_postmortem_wait *w, const struct cw_snapshot *snap,
		      const struct cw_verdict *verdict)
{
	*w = (struct cw_postmortem_wait){
		.since_ns = verdict->waiting_since_ns,
		.verdict_class = verdict->verdict_class,
		.detail = verdict->detail,
		.confidence = verdict->confidence,
		.n_culprits = verdict->n_culprits,
		.coll_seq = verdict->coll_seq,
	};
	if (verdict->comm < snap->n_comms) {
		w->comm_id = snap->comms[verdict->comm].id;
		w->instance = snap->comms[verdict->comm].instance;
	}
	for (uint32_t i = 0; i < verdict->n_culprits && i < CW_POSTMORTEM_MAX_CULPRITS; i++)
		w->culprits[i] = snap->ranks[verdict->culprits[i].rank].rank;
	(void)cw_say_text(&verdict->said, w->summary, sizeof(w->summary));
}

void cw_postmortem_remember(struct cw_postmortem_memory *m, const struct cw_snapshot *snap,
			    const struct cw_verdict_list *list)
{
	m->has_failed = false;
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (cw_liveness_is_dead(snap->ranks[i].liveness) &&
		    (snap->ranks[i].liveness != CW_LIVE_EXITED || snap->ranks[i].exit_code))
			m->has_failed = true;
	if (m->has_failed)
		return;
	m->seen_ns = snap->now_ns;
	m->before.since_ns = 0;
	for (uint32_t i = 0; i < list->n; i++) {
		const struct cw_verdict *verdict = &list->v[i];

		if (verdict->verdict_class == CW_CLASS_HEALTHY || verdict->waiting_since_ns <= 0)
			continue;
		note_wait(&m->before, snap, verdict);
		return;
	}
}

/* ---- the component of a post-mortem ---- */

bool cw_postmortem_is_over(const struct cw_job_digests *digests, const struct cw_rank_ref *refs,
			   unsigned n_refs)
{
	bool has_dead = false;

	for (unsigned i = 0; i < n_refs; i++) {
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
 * Sets the identity of the component: the lowest member of its largest communicator. Without a
 * communicator, it is the lowest rank.
 */
static void identify(struct cw_postmortem *postmortem, const struct cw_job_digests *digests,
		     const struct cw_rank_ref *refs, unsigned n_refs)
{
	const struct cw_msg_member *best = NULL;
	const struct cw_msg_rank *lowest = NULL;

	for (unsigned i = 0; i < n_refs; i++) {
		const struct cw_msg_rank *r = cw_job_digests_rank(digests, &refs[i]);

		for (uint32_t k = 0; k < r->n_members; k++) {
			const struct cw_msg_member *member = &r->members[k];

			if (member->comm_rank < 0 || (best && !is_better(member, best)))
				continue;
			best = member;
			postmortem->start_ticks = r->start_ticks;
			postmortem->pid = r->pid;
		}
		if (!lowest || r->rank < lowest->rank)
			lowest = r;
	}
	postmortem->comm_id = best ? best->comm_id : 0;
	postmortem->instance = best ? best->instance : 0;
	if (!best && lowest) {
		postmortem->start_ticks = lowest->start_ticks;
		postmortem->pid = lowest->pid;
	}
}

/*
 * Finds a post-mortem by its identity, or else by any of its processes. A component of ranks
 * without a communicator grows with each rank that ends, and its identity changes.
 */
static struct cw_postmortem *find(const struct cw_postmortems *all,
				  const struct cw_postmortem *like,
				  const struct cw_job_digests *digests,
				  const struct cw_rank_ref *refs, unsigned n_refs)
{
	struct cw_postmortem *postmortem;

	DL_FOREACH (all->list, postmortem)
		if (postmortem->comm_id == like->comm_id &&
		    postmortem->instance == like->instance &&
		    postmortem->start_ticks == like->start_ticks)
			return postmortem;
	DL_FOREACH (all->list, postmortem)
		for (unsigned i = 0; i < n_refs; i++) {
			const struct cw_msg_rank *r = cw_job_digests_rank(digests, &refs[i]);

			if (r->start_ticks == postmortem->start_ticks && r->pid == postmortem->pid)
				return postmortem;
		}
	return NULL;
}

/*
 * Finds or adds the post-mortem of these ranks. Returns NULL if out of memory or over the limit; we
 * then write no post-mortem.
 */
static struct cw_postmortem *find_or_add(struct cw_postmortems *all,
					 const struct cw_job_digests *digests,
					 const struct cw_rank_ref *refs, unsigned n_refs,
					 int64_t now_ns)
{
	struct cw_postmortem like = { .over_ns = now_ns, .changed_ns = now_ns }, *e;

	identify(&like, digests, refs, n_refs);
	e = find(all, &like, digests, refs, n_refs);
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
			unsigned n_refs)
{
	for (unsigned i = 0; i < n_refs; i++)
		if (digests->nodes[refs[i].node].state != CW_NODE_REPORTING)
			return true;
	return false;
}

static int64_t due_ns(const struct cw_postmortem *postmortem, bool is_awaiting)
{
	int64_t latest = postmortem->over_ns + CW_POSTMORTEM_MAX_NS,
		settled = postmortem->changed_ns + CW_POSTMORTEM_SETTLE_NS;

	return is_awaiting || settled > latest ? latest : settled;
}

bool cw_postmortem_is_due(struct cw_postmortems *all, const struct cw_job_digests *digests,
			  const struct cw_rank_ref *refs, unsigned n_refs, int64_t now_ns)
{
	struct cw_postmortem *postmortem = find_or_add(all, digests, refs, n_refs, now_ns);
	unsigned dead = 0;

	if (!postmortem)
		return false;
	postmortem->is_seen = true;
	if (postmortem->is_done)
		return false;
	for (unsigned i = 0; i < n_refs; i++)
		dead += cw_liveness_is_dead(cw_job_digests_rank(digests, &refs[i])->liveness);
	if (dead != postmortem->n_dead) {
		postmortem->n_dead = dead;
		postmortem->changed_ns = now_ns;
		return true;
	}
	return now_ns >= due_ns(postmortem, awaits_node(digests, refs, n_refs));
}

/* ---- deaths ---- */

static void note_members(struct cw_postmortem_death *death, const struct cw_msg_rank *r)
{
	for (uint32_t k = 0; k < r->n_members; k++) {
		const struct cw_msg_member *member = &r->members[k];

		if (member->pending)
			death->is_inside_call = true;
		if (cw_result_is_lost_peer(member->async_error ? member->async_error
							       : member->last_result))
			death->has_lost_peer = true;
	}
	if (r->host_call)
		death->is_inside_call = true;
}

static struct cw_postmortem_death death_of(const struct cw_postmortem_input *input, uint32_t index)
{
	const struct cw_msg_rank *r = cw_job_digests_rank(input->digests, &input->refs[index]);
	struct cw_postmortem_death death = {
		.node = input->refs[index].node,
		.pid = r->pid,
		.liveness = r->liveness,
		.exit_code = r->exit_code,
		.term_signal = r->term_signal,
		.end_by = r->end_by,
		.end_sender = r->end_sender,
		.is_oom_killed = r->flags & CW_RANKF_OOM_KILLED,
		.is_shutdown = r->flags & CW_RANKF_SHUTDOWN,
		.ended_ns = input->snap->ranks[index].ended_ns,
		.unsure_ns = CW_POSTMORTEM_UNKNOWN_NS,
	};
	int64_t late_ns, spread_ns;

	cw_job_digests_node_clock(&input->digests->nodes[death.node], &late_ns, &spread_ns);
	death.ended_ns -= late_ns;
	if (spread_ns >= 0)
		death.unsure_ns = CW_POSTMORTEM_FAR_NS + spread_ns;
	note_members(&death, r);
	return death;
}

/*
 * Copies facts between the ranks of one process, because they share calls and errors. The ranks of
 * a process are adjacent.
 */
static void share_facts(const struct cw_postmortem_input *input, struct cw_postmortem_death *deaths)
{
	for (uint32_t i = 0, end; i < input->snap->n_ranks; i = end) {
		bool is_inside_call = false, has_lost_peer = false;

		for (end = i;
		     end < input->snap->n_ranks &&
		     cw_snap_rank_shares_process(&input->snap->ranks[i], &input->snap->ranks[end]);
		     end++) {
			is_inside_call = is_inside_call || deaths[end].is_inside_call;
			has_lost_peer = has_lost_peer || deaths[end].has_lost_peer;
		}
		for (uint32_t k = i; k < end; k++) {
			deaths[k].is_inside_call = is_inside_call;
			deaths[k].has_lost_peer = has_lost_peer;
		}
	}
}

/* ---- blame ---- */

/* True if some rank died inside the call that the remembered wait was for. */
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
 * death, or the wait lasted until that death.
 */
static bool is_remembered(const struct cw_postmortem *postmortem,
			  const struct cw_postmortem_input *input,
			  const struct cw_postmortem_death *deaths)
{
	return postmortem->has_memory &&
	       (!postmortem->first.n_failed ||
		deaths[postmortem->first.earliest].ended_ns - postmortem->memory.seen_ns <=
			CW_POSTMORTEM_BLIND_NS ||
		lasted_until_the_end(&postmortem->memory.before, input->snap));
}

/*
 * Returns the mismatched call that gave wrong data to the first rank that ended. The alert blames
 * the same call. NULL = there is no such call.
 */
static const struct cw_postmortem_wait *blamed_call(struct cw_postmortem *postmortem,
						    const struct cw_postmortem_input *input,
						    const bool *is_first)
{
	for (uint32_t i = 0; input->list && i < input->list->n; i++) {
		const struct cw_verdict *verdict = &input->list->v[i];

		if (!verdict->has_ended || !is_first[verdict->ended])
			continue;
		note_wait(&postmortem->odd_call, input->snap, verdict);
		postmortem->odd_call.since_ns = 0;
		return &postmortem->odd_call;
	}
	return NULL;
}

static const struct cw_postmortem_wait *blamed(struct cw_postmortem *postmortem,
					       const struct cw_postmortem_input *input,
					       const struct cw_postmortem_death *deaths,
					       const bool *is_first)
{
	const struct cw_postmortem_wait *w = &postmortem->memory.before;
	bool is_waited_for = false, has_ended_itself, was_ended_by_waiting;
	const struct cw_postmortem_death *death;
	uint32_t i = 0;

	if (!is_remembered(postmortem, input, deaths) || !w->since_ns ||
	    !postmortem->first.n_first || w->verdict_class == CW_CLASS_UNKNOWN ||
	    w->verdict_class == CW_CLASS_PROCESS_DEAD ||
	    deaths[postmortem->first.earliest].ended_ns - w->since_ns < CW_POSTMORTEM_WAIT_NS)
		return blamed_call(postmortem, input, is_first);
	while (!is_first[i])
		i++;
	death = &deaths[i];
	for (uint32_t k = 0; k < w->n_culprits && k < CW_POSTMORTEM_MAX_CULPRITS; k++)
		is_waited_for = is_waited_for || w->culprits[k] == input->snap->ranks[i].rank;
	has_ended_itself = death->end_by == CW_END_BY_UNKNOWN ||
			   death->end_by == CW_END_BY_NOBODY || death->end_by == CW_END_BY_ITSELF;
	/* The rank ends itself after too long a wait, as a job's own watchdog does. */
	if (death->liveness == CW_LIVE_KILLED && death->term_signal == SIGABRT)
		was_ended_by_waiting = death->is_inside_call || !is_waited_for;
	else
		was_ended_by_waiting = death->liveness == CW_LIVE_EXITED && death->exit_code &&
				       death->is_inside_call;
	return has_ended_itself && was_ended_by_waiting ? w
							: blamed_call(postmortem, input, is_first);
}

/* ---- output ---- */

static void drop_evidence(struct cw_postmortem *postmortem)
{
	if (postmortem->effects)
		postmortem->effects->cancel(postmortem->effects->user, postmortem);
	postmortem->effects = NULL;
	cw_evidence_set_fini(&postmortem->evidence);
}

static void finish(struct cw_postmortem *postmortem)
{
	postmortem->is_done = true;
	drop_evidence(postmortem);
	json_decref(postmortem->doc);
	postmortem->doc = NULL;
}

static void log_postmortem(const struct cw_postmortem *pm, const struct cw_leader_effects *effects)
{
	const char *summary = json_string_value(json_object_get(pm->doc, "summary"));
	const char *id_text = json_string_value(json_object_get(pm->doc, "id"));
	char text[1536], id[128], job[288], verdict_class[64], uid[64];
	const char *fields[] = { id, job, verdict_class, uid, NULL };

	if (!effects->event)
		return;
	(void)snprintf(text, sizeof(text), "job=%s inc=%s: post-mortem: %s (collwatch report %s)",
		       pm->job, id_text, summary, id_text);
	(void)snprintf(id, sizeof(id), "COLLWATCH_INCIDENT=%s", id_text);
	(void)snprintf(job, sizeof(job), "COLLWATCH_JOB=%s", pm->job);
	(void)snprintf(verdict_class, sizeof(verdict_class), "COLLWATCH_CLASS=%s",
		       cw_class_name(pm->verdict_class));
	(void)snprintf(uid, sizeof(uid), "COLLWATCH_UID=%u", pm->uid);
	effects->event(effects->user, CW_LOG_NOTICE, CW_MESSAGE_ID_POSTMORTEM, text, fields);
}

static void on_evidence(const char *node, const struct cw_message *reply, void *user)
{
	struct cw_postmortem *pm = user;

	cw_evidence_set_take(&pm->evidence, node, reply);
}

/*
 * Requests the stacks of the first ranks, if they crashed. The answers come before the document has
 * settled. If an alert was sent, its bundle has these stacks.
 */
static void ask_crashes(struct cw_postmortem *pm, const struct cw_leader_effects *effects,
			const struct cw_postmortem_input *input, const bool *is_first)
{
	struct cw_culprit culprits[CW_INCIDENT_MAX_CULPRITS] = { 0 };
	struct cw_verdict verdict = { .verdict_class = CW_CLASS_PROCESS_DEAD,
				      .culprits = culprits,
				      .waiting_since_ns = 1 };

	if (pm->effects || *pm->incident)
		return;
	for (uint32_t i = 0;
	     i < input->snap->n_ranks && verdict.n_culprits < CW_INCIDENT_MAX_CULPRITS; i++)
		if (is_first[i])
			culprits[verdict.n_culprits++].rank = i;
	if (cw_job_id_make(pm->uid, pm->job, &pm->job_id) < 0)
		return; /* out of memory: the post-mortem has no stacks */
	pm->effects = effects;
	/* The function logs errors itself. */
	(void)cw_evidence_set_request(
		&pm->evidence, CW_EVIDENCE_PROC | CW_EVIDENCE_NATIVE | CW_EVIDENCE_PYTHON, effects,
		&pm->job_id, input->snap, &verdict, CW_INCIDENT_EVIDENCE_MS, on_evidence, pm);
}

/* Adds the stacks to the document. If memory runs out, the document has none. */
static void add_crashes(struct cw_postmortem *pm)
{
	json_t *evidence = cw_evidence_set_array(&pm->evidence), *doc = NULL;
	struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;

	if (json_array_size(evidence) &&
	    cw_incident_facts_read(pm->doc, &arena, &facts, NULL, NULL) == 0 &&
	    cw_incident_facts_add_evidence(&facts, &arena, evidence) == 0) {
		facts.ending = facts.summary.text; /* no alert was sent, so they are the same */
		doc = cw_incident_facts_write(&facts);
	}
	if (doc) {
		json_decref(pm->doc);
		pm->doc = doc;
	}
	cw_arena_fini(&arena);
	json_decref(evidence);
}

static void put_postmortem(struct cw_postmortem *pm, const struct cw_leader_effects *effects)
{
	const struct cw_incident_due due = {
		.id = json_string_value(json_object_get(pm->doc, "id")),
		.job = pm->job,
		.uid = pm->uid,
		.verdict_class = pm->verdict_class,
	};
	int r = 0;

	/*
	 * If an alert of the job was sent, the user finds the post-mortem with that alert. We then
	 * send no other alert.
	 */
	if (effects->put_postmortem)
		r = effects->put_postmortem(effects->user, &due, pm->doc, !*pm->incident);
	if (r == -EEXIST) {
		leader_log(effects, CW_LOG_DEBUG, "inc=%s: its post-mortem is there already",
			   due.id);
	} else {
		if (r < 0)
			leader_log(effects, CW_LOG_WARN,
				   "inc=%s: its post-mortem cannot be kept: %s", due.id,
				   strerror(-r));
		log_postmortem(pm, effects);
	}
	finish(pm);
}

static void conclude(struct cw_postmortem *pm, const struct cw_leader_effects *effects)
{
	if (pm->doc) {
		add_crashes(pm);
		put_postmortem(pm, effects);
		return;
	}
	if (pm->first.outcome == CW_POSTMORTEM_CANCELLED)
		leader_log(effects, CW_LOG_NOTICE, "job=%s: cancelled: %s", pm->job, pm->cancelled);
	finish(pm);
}

/* ---- evaluation ---- */

static bool has_unalerted_wrong_data(const struct cw_postmortem_input *input)
{
	for (uint32_t i = 0; input->list && i < input->list->n; i++)
		if (cw_postmortem_is_wrong_data(&input->list->v[i]) && !(input->alerted & 1u << i))
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

static bool is_same(const json_t *a, const json_t *b)
{
	return a == b || json_equal(a, b);
}

/* Keeps the list of the older document if there is one. */
static void keep(json_t *doc, const json_t *old, const char *key)
{
	json_t *list = json_object_get(old, key);

	if (json_array_size(list))
		(void)json_object_set(doc, key, list);
}

static int make_doc(struct cw_postmortem *postmortem, const struct cw_leader_effects *effects,
		    const struct cw_postmortem_input *input,
		    const struct cw_postmortem_death *deaths, const bool *is_first)
{
	struct cw_postmortem_input completed = *input;
	struct cw_postmortem_facts facts = {
		.input = &completed,
		.deaths = deaths,
		.is_first = is_first,
		.first = &postmortem->first,
		.blamed = blamed(postmortem, input, deaths, is_first),
	};
	const struct cw_incident_matter matter = {
		.uid = input->uid,
		.job = postmortem->job,
		.key = { .comm_id = postmortem->comm_id,
			 .instance = postmortem->instance,
			 .seq = POSTMORTEM_SEQ,
			 .is_set = true },
		.start_ticks = postmortem->start_ticks,
	};
	const json_t *old = postmortem->doc;
	char id[CW_INCIDENT_ID_LEN];
	json_t *doc;

	if (cw_incident_id_make(&matter, id) < 0)
		return -ENOMEM;
	completed.memory = is_remembered(postmortem, input, deaths) ? &postmortem->memory : NULL;
	completed.incident = postmortem->incident;
	facts.id = *postmortem->incident ? postmortem->incident : id;
	doc = cw_postmortem_doc(&facts);
	if (!doc)
		return -ENOMEM;
	/* Some facts only the first evaluation has. They stay unless the new document differs. */
	if (old && is_same(json_object_get(doc, "first"), json_object_get(old, "first")))
		keep(doc, old, "last_calls");
	keep(doc, old, "wrong_data");
	keep(doc, old, "wrong_data" CW_SAID_SUFFIX);
	json_decref(postmortem->doc);
	postmortem->doc = doc;
	postmortem->verdict_class = (uint32_t)cw_class_from_name(
		/* The name is one that we wrote. */
		json_string_value(json_object_get(doc, "class")));
	ask_crashes(postmortem, effects, input, is_first);
	return 0;
}

static int update(struct cw_postmortem *postmortem, const struct cw_leader_effects *effects,
		  const struct cw_postmortem_input *input)
{
	uint32_t n = input->snap->n_ranks;
	_cleanup_(freep) struct cw_postmortem_death *deaths =
		calloc((size_t)n + 1, sizeof(*deaths));
	_cleanup_(freep) bool *is_first = calloc((size_t)n + 1, sizeof(*is_first));

	if (!deaths || !is_first)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		deaths[i] = death_of(input, i);
	share_facts(input, deaths);
	cw_postmortem_order(deaths, n, is_first, &postmortem->first);
	if (postmortem->first.outcome == CW_POSTMORTEM_CANCELLED) {
		const struct cw_snap_rank *r = &input->snap->ranks[postmortem->first.earliest];
		char how[96];

		cw_postmortem_format_end(&deaths[postmortem->first.earliest], how, sizeof(how));
		(void)snprintf(postmortem->cancelled, sizeof(postmortem->cancelled), "rank %d %s%s",
			       r->rank, cw_cause_verb(r->cause_kind, r->cause_by),
			       r->cause && *r->cause ? r->cause : how);
	}
	if (postmortem->first.outcome == CW_POSTMORTEM_FAILED || has_unalerted_wrong_data(input))
		return make_doc(postmortem, effects, input, deaths, is_first);
	if (postmortem->first.outcome == CW_POSTMORTEM_CANCELLED && postmortem->doc) {
		/* After all reports we know that the job did not fail. */
		json_decref(postmortem->doc);
		postmortem->doc = NULL;
	}
	return 0;
}

void cw_postmortem_evaluate(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			    const struct cw_postmortem_input *input)
{
	const struct cw_snapshot *snap = input->snap;
	struct cw_postmortem like = { 0 }, *e;
	int64_t newest_death_ns = 0;

	identify(&like, input->digests, input->refs, input->snap->n_ranks);
	e = find(all, &like, input->digests, input->refs, input->snap->n_ranks);
	if (!e || e->is_done)
		return;
	if (!*e->job) {
		e->uid = input->uid;
		(void)snprintf(e->job, sizeof(e->job), "%s", snap->job ? snap->job : "");
		e->has_memory = e->has_memory || input->memory;
		if (input->memory)
			e->memory = *input->memory;
	}
	/* A later evaluation may find an alert from before a restart. */
	if (!*e->incident)
		(void)snprintf(e->incident, sizeof(e->incident), "%s", input->incident);
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].ended_ns > newest_death_ns)
			newest_death_ns = snap->ranks[i].ended_ns;
	if (!is_a_job(snap) ||
	    (!e->has_memory && snap->now_ns - newest_death_ns > CW_POSTMORTEM_OLD_NS)) {
		finish(e);
		return;
	}
	if (!e->has_memory && input->is_partitioned)
		return;
	if (update(e, effects, input) < 0) {
		leader_log(effects, CW_LOG_ERR, "job=%s: out of memory for its post-mortem",
			   e->job);
		return; /* the old document stays */
	}
	cw_leader_effects_name_user(effects, e->uid, e->doc);
	if (e->first.outcome == CW_POSTMORTEM_HEALTHY && !e->doc)
		finish(e);
	else if (input->snap->now_ns >=
		 due_ns(e, awaits_node(input->digests, input->refs, input->snap->n_ranks)))
		conclude(e, effects);
}

static void forget(struct cw_postmortems *all, struct cw_postmortem *postmortem)
{
	DL_DELETE(all->list, postmortem);
	all->n--;
	drop_evidence(postmortem);
	json_decref(postmortem->doc);
	free(postmortem);
}

void cw_postmortem_sweep(struct cw_postmortems *all)
{
	struct cw_postmortem *postmortem, *tmp;

	DL_FOREACH_SAFE (all->list, postmortem, tmp) {
		/*
		 * We keep a pending post-mortem, because its ranks may now be in one component with
		 * new ranks.
		 */
		if (!postmortem->is_seen && postmortem->is_done)
			forget(all, postmortem);
		else
			postmortem->is_seen = false;
	}
}

void cw_postmortem_fini(struct cw_postmortems *all, const struct cw_leader_effects *effects,
			bool was_led_here)
{
	struct cw_postmortem *postmortem, *tmp;

	DL_FOREACH_SAFE (all->list, postmortem, tmp) {
		if (was_led_here && !postmortem->is_done)
			conclude(postmortem, effects);
		forget(all, postmortem);
	}
}
