/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An evaluation finds the components of the job key's ranks. For each component we find the job
 * that one of its processes was in before, or start a new job. From the digests we build a
 * snapshot, and from the snapshot a list of verdicts. Each verdict and the job's patience give a
 * decision, and decisions move incidents.
 *
 * We measure work in memberships. If the work of a job exceeds the budget of this iteration of the
 * loop, we leave the job for the next iteration and set has_deferred.
 */
#include "leader/job_evaluation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "leader/incident/incident_journal.h"
#include "leader/snapshot_build.h"
#include "leader/window_fetch.h"
#include "say/english.h"

#define START_NOTICE_NS (5 * CW_NS_PER_S)

/* One evaluation: a job key's entry, and the ranks of one job. */
struct evaluation {
	struct cw_job_evaluations *all;
	struct cw_leader_entry *entry;
	const struct cw_rank_ref *refs;
	unsigned n_refs;
	int64_t now_ns;
};

static void keep_memory(struct cw_job_evaluations *all, struct cw_snapshot *snap)
{
	cw_snapshot_reset(snap);
	/* We keep one spare snapshot and free an older one. cw_snapshot_free() returns NULL. */
	(void)cw_snapshot_free(all->spare);
	all->spare = snap;
}

/* ---- start and end ---- */

static void announce_start(const struct evaluation *evaluation, struct cw_job *job)
{
	/*
	 * We wait a second or two for the digests of the other nodes. The line then has the right
	 * number of ranks.
	 */
	if (job->is_announced || job->view.comms == 0 ||
	    (job->view.ranks < job->view.ranks_expected &&
	     evaluation->now_ns - job->started_ns < START_NOTICE_NS))
		return;
	job->is_announced = true;
	leader_log(evaluation->all->config->effects, CW_LOG_NOTICE,
		   "job=%s: watching %u of %u ranks, uid=%u", evaluation->entry->digests.label,
		   job->view.ranks, job->view.ranks_expected, evaluation->entry->digests.uid);
}

void cw_job_evaluation_end_job(struct cw_job_evaluations *all, struct cw_leader_entry *entry,
			       struct cw_job *job, bool was_led_here)
{
	int64_t now = cw_clock_now_ns(all->config->clock);

	if (was_led_here)
		cw_job_incidents_end(&job->incidents);
	if (job->is_announced && was_led_here)
		leader_log(all->config->effects, CW_LOG_NOTICE, "job=%s: ended after %lld s",
			   entry->digests.label,
			   (long long)((now - job->started_ns) / CW_NS_PER_S));
	cw_job_incidents_fini(&job->incidents);
	all->config->effects->cancel(all->config->effects->user, job);
	if (all->pending.job == job) {
		keep_memory(all, all->pending.snap);
		all->pending = (struct cw_pending_evaluation){ 0 };
	}
	DL_DELETE(entry->jobs, job);
	all->stats->jobs--;
	cw_job_free(job);
}

static struct cw_job *new_job(struct evaluation *evaluation)
{
	struct cw_job_evaluations *all = evaluation->all;
	struct cw_incident_config config = {
		.clock = all->config->clock,
		.effects = all->config->effects,
		.job_hash = evaluation->entry->digests.job_hash,
		.uid = evaluation->entry->digests.uid,
		.job = evaluation->entry->digests.label,
		.self = all->config->self,
		.iteration_pieces =
			all->config->iteration_members, /* lower than the default only in tests */
	};
	struct cw_job *job;
	unsigned n;

	DL_COUNT(evaluation->entry->jobs, job, n);
	if (n >= CW_LEADER_MAX_JOBS_PER_JOB_KEY) {
		all->stats->refused_jobs++;
		return NULL;
	}
	if (cw_job_new(++all->next_job, evaluation->now_ns, &job) < 0)
		return NULL;
	job->incidents.config = config;
	job->windows_over_limit = &all->stats->windows_over_limit;
	DL_APPEND(evaluation->entry->jobs, job);
	all->stats->jobs++;
	return job;
}

/*
 * Returns the oldest job that contained one of these processes and that no other component has
 * claimed.
 */
static struct cw_job *find_job(const struct evaluation *evaluation)
{
	struct cw_job *job, *best = NULL;

	for (unsigned i = 0; i < evaluation->n_refs; i++) {
		uint64_t number =
			cw_process_map_job(&evaluation->entry->processes,
					   &evaluation->entry->digests, &evaluation->refs[i]);

		if (!number || (best && number >= best->number))
			continue;
		DL_FOREACH (evaluation->entry->jobs, job)
			if (job->number == number && !job->is_seen)
				best = job;
	}
	return best;
}

/* ---- ranks without a record ---- */

/* True if a rank is missing, or is present without a record. */
static bool lacks_records(const struct cw_snapshot *snap)
{
	if (snap->n_ranks < snap->ranks_expected)
		return true;
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (!(snap->ranks[i].flags & CW_RANKF_HAS_RECORD))
			return true;
	return false;
}

/*
 * Asks all nodes for missing ranks. Any node may have one, even a node without a digest of this
 * job.
 */
static void search_for_ranks(struct evaluation *evaluation, struct cw_job *job,
			     const struct cw_snapshot *snap, const struct cw_verdict *verdict)
{
	const struct cw_leader_config *config = evaluation->all->config;
	const struct cw_leader_effects *effects = config->effects;
	struct cw_message msg = {
		.type = CW_MSG_RANK_SEARCH,
		.rank_search = { .job_hash = evaluation->entry->digests.job_hash,
				 .job_key = evaluation->entry->digests.job.key,
				 .label = evaluation->entry->digests.label,
				 .uid = evaluation->entry->digests.uid },
	};

	if (verdict->verdict_class != CW_CLASS_INIT_STUCK || !verdict->waiting_since_ns ||
	    evaluation->now_ns - verdict->waiting_since_ns < CW_LEADER_SEARCH_AFTER_NS ||
	    !lacks_records(snap) ||
	    (job->searched_ns && evaluation->now_ns - job->searched_ns < CW_LEADER_SEARCH_EVERY_NS))
		return;
	job->searched_ns = evaluation->now_ns;
	evaluation->all->stats->searches++;
	/* If the message is not sent now, we send it at the next search. */
	(void)effects->send(effects->user, config->self, &msg);
	(void)effects->announce(effects->user, &msg);
}

/* ---- evaluation ---- */

static uint64_t count_collectives(const struct cw_snapshot *snap)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < snap->n_comms; i++) {
		uint64_t most = 0;

		for (uint32_t m = 0; m < snap->comms[i].nranks; m++)
			if (snap->comms[i].members[m].rank != CW_SNAP_NONE &&
			    snap->comms[i].members[m].coll_returned > most)
				most = snap->comms[i].members[m].coll_returned;
		sum += most;
	}
	return sum;
}

/* Appends "ml/train-3\n" unless `pods` already has it. Returns false if the buffer is full. */
static bool add_pod(char *pods, size_t len, const struct cw_snap_rank *r)
{
	char pod[320];
	size_t at = strlen(pods), n;
	const char *found = pods;

	(void)snprintf(pod, sizeof(pod), "%s%s%s\n", r->pod_namespace ? r->pod_namespace : "",
		       r->pod_namespace ? "/" : "", r->pod);
	n = strlen(pod);
	while ((found = strstr(found, pod)) && found > pods && found[-1] != '\n')
		found++;
	if (found)
		return true;
	if (at + n >= len)
		return false;
	memcpy(pods + at, pod, n + 1);
	return true;
}

/*
 * Lists the pods of the job. Ranks of a pod are adjacent, so we compare most ranks with the last
 * pod only.
 */
static void list_pods(const struct cw_snapshot *snap, char *pods, size_t len)
{
	const char *last = NULL;

	pods[0] = '\0';
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &snap->ranks[i];

		if (!r->pod || (last && strcmp(last, r->pod) == 0))
			continue;
		last = r->pod;
		if (!add_pod(pods, len, r))
			return;
	}
}

/*
 * Lists communicators with missing members. The missing members may be ranks of a job with another
 * label, and the status then shows both jobs to the user.
 */
static void list_partial(const struct cw_snapshot *snap, struct cw_job_view *view)
{
	view->n_partial = 0;
	for (uint32_t i = 0; i < snap->n_comms && view->n_partial < CW_JOB_VIEW_PARTIAL; i++) {
		const struct cw_snap_comm *comm = &snap->comms[i];
		uint32_t seen = comm->parent_id ? comm->nranks : 0;

		for (uint32_t m = 0; !comm->parent_id && m < comm->nranks; m++)
			seen += comm->members[m].rank != CW_SNAP_NONE;
		if (seen < comm->nranks)
			view->partial[view->n_partial++] = (struct cw_job_view_comm){
				.id = comm->id, .nranks = comm->nranks, .seen = seen
			};
	}
	view->pod_namespace[0] = '\0';
	for (uint32_t i = 0; i < snap->n_ranks && !view->pod_namespace[0]; i++)
		if (snap->ranks[i].pod_namespace)
			(void)snprintf(view->pod_namespace, sizeof(view->pod_namespace), "%s",
				       snap->ranks[i].pod_namespace);
}

static void update_view(struct cw_job *job, const struct cw_snapshot *snap,
			const struct cw_verdict *verdict, const struct cw_stall_decision *decision)
{
	const struct cw_snap_rank *timeout_of = cw_snapshot_job_timeout(snap);
	struct cw_job_view *view = &job->view;

	view->ranks = snap->n_ranks;
	view->ranks_expected = snap->ranks_expected;
	view->comms = snap->n_comms;
	view->nodes = snap->n_nodes;
	view->collectives = count_collectives(snap);
	list_pods(snap, view->pods, sizeof(view->pods));
	list_partial(snap, view);
	view->job_timeout_ns = timeout_of ? timeout_of->job_timeout_ns : 0;
	view->is_timeout_assumed = timeout_of && (timeout_of->flags & CW_RANKF_TIMEOUT_ASSUMED);
	(void)snprintf(view->job_timeout_source, sizeof(view->job_timeout_source), "%s",
		       timeout_of && timeout_of->job_timeout_source ? timeout_of->job_timeout_source
								    : "");
	if (view->phase != decision->phase)
		view->since_ns = snap->now_ns;
	view->phase = decision->phase;
	view->verdict_class = verdict->verdict_class;
	view->summary[0] = '\0';
	if (decision->phase != CW_STALL_QUIET)
		(void)cw_say_text(&verdict->said, view->summary, sizeof(view->summary));
}

static uint32_t ranks_reported(const struct cw_snapshot *snap)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		n += snap->nodes[snap->ranks[i].node].state == CW_NODE_REPORTING;
	return n;
}

static unsigned nodes_in_touch(const struct evaluation *evaluation)
{
	const struct cw_job_digests *digests = &evaluation->entry->digests;
	unsigned n = 0;

	/* The node's last digest is recent, and the connection to it has not broken since. */
	for (unsigned i = 0; i < digests->n_nodes; i++) {
		const struct cw_peer *p = cw_leader_effects_peer(evaluation->all->config->effects,
								 digests->nodes[i].name);

		n += digests->nodes[i].state == CW_NODE_REPORTING &&
		     !(p && p->state == CW_PEER_LOST);
	}
	return n;
}

/*
 * True if this leader has no contact to most of the job's nodes. It then knows too little to call
 * anything a hang.
 *
 * If the network cut this leader off before it led, it has digests only of its own node, and copies
 * of the previous leader's digests. It then lacks most of the ranks, and most of the peers that it
 * should have.
 */
static bool is_cut_off(const struct evaluation *evaluation, const struct cw_snapshot *snap)
{
	const struct cw_leader_config *config = evaluation->all->config;
	int64_t awake_ns = cw_clock_awake_ns(config->clock);
	unsigned n_peers, n_alive = 0;
	const struct cw_peer *peers = config->effects->peers(config->effects->user, &n_peers);

	for (unsigned i = 0; i < n_peers; i++)
		n_alive += cw_peer_is_alive(&peers[i], awake_ns);
	if (2 * nodes_in_touch(evaluation) < evaluation->entry->digests.n_nodes)
		return true;
	/* A node that has found no peer yet does not know how many peers there should be. */
	return (2 * (n_alive + 1) < n_peers + 1 || (n_peers == 0 && config->finds_peers)) &&
	       2 * (uint64_t)ranks_reported(snap) < snap->ranks_expected;
}

/* Returns the node that would lead the job, if we lost contact to it only just now; NULL = none. */
static const char *lately_lost_leader(const struct evaluation *evaluation)
{
	const struct cw_leader_config *config = evaluation->all->config;
	int64_t awake_ns = cw_clock_awake_ns(config->clock);
	uint64_t own = cw_election_weight(evaluation->entry->digests.job_hash, config->self);
	unsigned n_peers;
	const struct cw_peer *peers = config->effects->peers(config->effects->user, &n_peers);

	for (unsigned i = 0; i < n_peers; i++)
		if (peers[i].state == CW_PEER_LOST &&
		    awake_ns - peers[i].last_seen_ns < CW_LEADER_RETURNS_NS &&
		    cw_election_weight(evaluation->entry->digests.job_hash, peers[i].name) > own)
			return peers[i].name;
	return NULL;
}

/*
 * Returns a lost leader that may have alerted; NULL = none, and this leader need not wait for one.
 *
 * If the network is cut in two halves, each half has a leader. A leader that is cut off alone may
 * still alert about incidents that it announced. So a stand-in waits in two cases: it sees at most
 * half of the job's nodes, or the lost leader had announced an incident. Either the lost leader
 * comes back soon and reports its alerts, or it does not come back.
 */
static const char *may_be_alerted_by(const struct evaluation *evaluation)
{
	bool is_half = 2 * nodes_in_touch(evaluation) <= evaluation->entry->digests.n_nodes;

	return is_half || evaluation->entry->was_announced_by_lost_peer
		       ? lately_lost_leader(evaluation)
		       : NULL;
}

/*
 * True if a node is back in contact but has sent no digest since. The leader of the meantime may
 * have alerted about the same hang. With the node's old digest we would find another call for the
 * hang, and so derive another id.
 */
static bool awaits_news(const struct evaluation *evaluation, int64_t partitioned_ns)
{
	const struct cw_leader_config *config = evaluation->all->config;
	const struct cw_job_digests *digests = &evaluation->entry->digests;
	int64_t awake_ns = cw_clock_awake_ns(config->clock);

	if (!partitioned_ns || awake_ns - partitioned_ns > CW_JOB_DIGESTS_GONE_NS)
		return false;
	for (unsigned i = 0; i < digests->n_nodes; i++) {
		const struct cw_peer *p =
			cw_leader_effects_peer(config->effects, digests->nodes[i].name);

		if (p && cw_peer_is_alive(p, awake_ns) &&
		    digests->nodes[i].last_seen_ns < partitioned_ns)
			return true;
	}
	return false;
}

/*
 * True if we must not alert on any verdict: this leader knows too little, or another node may have
 * alerted.
 */
static bool must_be_silent(const struct evaluation *evaluation, struct cw_job *job,
			   const struct cw_snapshot *snap)
{
	struct cw_job_view *view = &job->view;
	const char *lost;

	if (view->is_cut_off) {
		(void)snprintf(view->summary, sizeof(view->summary),
			       "this leader is partitioned: only %u of %u ranks are visible",
			       ranks_reported(snap), snap->ranks_expected);
		job->partitioned_ns = cw_clock_awake_ns(evaluation->all->config->clock);
		return true;
	}
	lost = may_be_alerted_by(evaluation);
	if (lost) {
		(void)snprintf(view->summary, sizeof(view->summary),
			       "%s led this job and was lost just now: no alerts until it is back "
			       "or has been away for %d s",
			       lost, (int)(CW_LEADER_RETURNS_NS / CW_NS_PER_S));
		job->partitioned_ns = cw_clock_awake_ns(evaluation->all->config->clock);
		return true;
	}
	return awaits_news(evaluation, job->partitioned_ns);
}

/* ---- late ranks ---- */

static void notice_late(const struct evaluation *evaluation, const struct cw_late_rank *late,
			const char *what)
{
	const struct cw_leader_effects *effects = evaluation->all->config->effects;
	char text[768], job[288], rank[32], uid[32];
	const char *fields[] = { job, rank, uid, NULL };

	evaluation->all->stats->late_notices++;
	if (!effects->event)
		return;
	(void)snprintf(text, sizeof(text), "job=%s: %s", evaluation->entry->digests.label, what);
	(void)snprintf(job, sizeof(job), "COLLWATCH_JOB=%s", evaluation->entry->digests.label);
	(void)snprintf(rank, sizeof(rank), "COLLWATCH_RANK=%d", late->rank);
	(void)snprintf(uid, sizeof(uid), "COLLWATCH_UID=%u", evaluation->entry->digests.uid);
	effects->event(effects->user, CW_LOG_NOTICE, CW_MESSAGE_ID_LATE_RANK, text, fields);
}

/*
 * Searches for late ranks. The caller runs this when the requested windows have arrived, or will
 * not come.
 */
static void sample_late_ranks(const struct evaluation *evaluation, struct cw_job *job,
			      const struct cw_snapshot *snap)
{
	struct cw_late_rank over[CW_SLOW_MAX];
	const struct cw_late_rank *late;
	struct cw_slow_list list;
	char what[512];
	uint32_t n_over;

	if (cw_slow_find(snap, &list) < 0)
		/* Out of memory: the next evaluation tries again. */
		return;
	n_over = late_ranks_add_sample(&job->late, snap, &list, over);
	for (uint32_t i = 0; i < n_over; i++)
		leader_log(evaluation->all->config->effects, CW_LOG_INFO,
			   "job=%s: rank %d is no longer late, after %lld s",
			   evaluation->entry->digests.label, over[i].rank,
			   (long long)((evaluation->now_ns - over[i].since_ns) / CW_NS_PER_S));
	late = late_ranks_next_notice(&job->late, evaluation->now_ns);
	if (!late)
		return;
	late_ranks_format(&job->late, late, what, sizeof(what));
	notice_late(evaluation, late, what);
}

/*
 * Searches for late ranks in a job without a possible hang. In a hang, a missing rank is not late.
 */
static void watch_late(const struct evaluation *evaluation, struct cw_job *job,
		       const struct cw_snapshot *snap, bool quiet)
{
	struct cw_late_ranks *late = &job->late;
	unsigned n_asked;

	if (late->is_asked && job->windows_awaited)
		return;
	if (late->is_asked && quiet)
		sample_late_ranks(evaluation, job, snap);
	late->is_asked = false;
	if (!quiet || !late_ranks_is_due(late, evaluation->now_ns, job->view.collectives))
		return;
	n_asked = cw_window_fetch_all(evaluation->all->config->effects, &evaluation->entry->digests,
				      job, snap);
	evaluation->all->stats->window_requests += n_asked;
	late->is_asked = n_asked > 0;
	late->asked_ns = evaluation->now_ns;
	late->calls = job->view.collectives;
}

static void act_on(struct evaluation *evaluation, struct cw_job *job,
		   const struct cw_snapshot *snap, const struct cw_verdict_list *list,
		   const struct cw_stall_decision *decision)
{
	struct cw_job_view *view = &job->view;
	uint32_t shown = 0;
	bool is_quiet = true;

	/* Of the verdicts in the latest phase, the status shows the worst. */
	for (uint32_t i = 0; i < list->n; i++) {
		is_quiet = is_quiet && decision[i].phase == CW_STALL_QUIET;
		if (decision[i].phase > decision[shown].phase)
			shown = i;
	}
	update_view(job, snap, &list->v[shown], &decision[shown]);
	/* If a stall ended by itself, we send no alert, but the status shows the stall. */
	if (decision[0].resolved_key.is_set) {
		view->slow_for_ns = decision[0].resolved_after_ns;
		view->slow_until_ns = evaluation->now_ns;
		(void)snprintf(view->slow_what, sizeof(view->slow_what), "%s",
			       decision[0].resolved_what);
		leader_log(evaluation->all->config->effects, CW_LOG_INFO,
			   "job=%s: slow, went on after %lld s: %s",
			   evaluation->entry->digests.label,
			   (long long)(view->slow_for_ns / CW_NS_PER_S), view->slow_what);
	}
	job->view.is_cut_off = is_cut_off(evaluation, snap);
	if (must_be_silent(evaluation, job, snap))
		return;
	for (uint32_t i = 0; i < list->n; i++)
		search_for_ranks(evaluation, job, snap, &list->v[i]);
	for (uint32_t i = 0; i < list->n; i++)
		if (decision[i].want_windows)
			evaluation->all->stats->window_requests += cw_window_fetch(
				evaluation->all->config->effects, &evaluation->entry->digests, job,
				snap, &list->v[i]);
	cw_job_incidents_step(&job->incidents, snap, list, decision);
	watch_late(evaluation, job, snap, is_quiet);
}

static void evaluate_job(struct evaluation *evaluation, struct cw_job *job,
			 struct cw_snapshot *snap)
{
	struct cw_stall_decision decision[CW_VERDICT_LIST_MAX] = { 0 };
	char summary[CW_VERDICT_TEXT_MAX];
	struct cw_verdict_list list;
	int r;

	r = cw_history_update(&job->history, snap);
	if (r >= 0)
		r = cw_verdict_compute_all(snap, &list);
	if (r < 0) {
		leader_log(evaluation->all->config->effects, CW_LOG_WARN, "job=%s: no verdict: %s",
			   evaluation->entry->digests.label, strerror(-r));
		return;
	}
	cw_postmortem_remember(&job->memory, snap, &list);
	cw_stall_step_all(job->stall, snap, list.v, list.n, decision);
	evaluation->all->stats->evaluations++;
	for (uint32_t i = 0; i < list.n; i++)
		if (list.v[i].verdict_class != CW_CLASS_HEALTHY)
			leader_log(evaluation->all->config->effects, CW_LOG_DEBUG,
				   "job=%s: phase %u: %s: %s [%s]",
				   evaluation->entry->digests.label, (unsigned)decision[i].phase,
				   cw_confidence_name(list.v[i].confidence),
				   cw_say_text(&list.v[i].said, summary, sizeof(summary)),
				   decision[i].why);
	act_on(evaluation, job, snap, &list, decision);
	job->next_ns = decision[0].next_ns;
	for (uint32_t i = 1; i < list.n; i++)
		if (decision[i].next_ns < job->next_ns)
			job->next_ns = decision[i].next_ns;
	announce_start(evaluation, job);
	cw_verdict_list_fini(&list);
}

static uint64_t count_members(const struct evaluation *evaluation)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < evaluation->n_refs; i++)
		n += cw_job_digests_rank(&evaluation->entry->digests, &evaluation->refs[i])
			     ->n_members;
	return n;
}

/*
 * True if the job must wait for the next iteration: this iteration has evaluated enough. A large
 * job also waits while another large job uses the snapshot. That other job must first be judged, or
 * its text written.
 */
static bool must_wait(struct evaluation *evaluation)
{
	struct cw_job_evaluations *all = evaluation->all;

	if (all->iteration_members >= cw_job_evaluation_iteration_members(all))
		all->has_deferred = true;
	else if (!all->pending.snap ||
		 count_members(evaluation) <= cw_job_evaluation_iteration_members(all))
		return false;
	evaluation->entry->is_partly_evaluated = true;
	return true;
}

/*
 * Postpones the rest of a large evaluation, and takes *snap. The next iteration judges the
 * snapshot.
 */
static bool defer(struct evaluation *evaluation, struct cw_job *job, struct cw_snapshot **snap)
{
	struct cw_job_evaluations *all = evaluation->all;
	uint64_t n = count_members(evaluation);

	all->iteration_members += n;
	if (n <= cw_job_evaluation_iteration_members(all))
		return false;
	all->stats->split_evaluations++;
	job->next_ns = 0; /* the judgement will set it */
	all->pending = (struct cw_pending_evaluation){
		.snap = steal_ptr(snap), .entry = evaluation->entry, .job = job, .n_members = n
	};
	return true;
}

/* Frees the snapshot, unless an incident continues to write its text in the next iteration. */
static void end_evaluation(struct cw_job_evaluations *all, struct cw_pending_evaluation *evaluation)
{
	struct cw_job_incidents *incidents = &evaluation->job->incidents;

	if (cw_job_incidents_are_writing(incidents) && !all->pending.snap) {
		all->pending = *evaluation;
		all->pending.is_judged = true;
		return;
	}
	while (cw_job_incidents_write_on(incidents, evaluation->snap))
		;
	keep_memory(all, evaluation->snap);
}

void cw_job_evaluation_finish(struct cw_job_evaluations *all)
{
	struct cw_pending_evaluation pending = all->pending;
	struct evaluation evaluation = { .all = all, .entry = pending.entry };

	if (!pending.snap)
		return;
	all->pending = (struct cw_pending_evaluation){ 0 };
	if (pending.is_judged) {
		all->iteration_members = cw_job_evaluation_iteration_members(all);
		(void)cw_job_incidents_write_on(&pending.job->incidents,
						pending.snap); /* see below */
	} else {
		evaluation.now_ns = pending.snap->now_ns;
		all->iteration_members += pending.n_members;
		evaluate_job(&evaluation, pending.job, pending.snap);
		if (pending.job->next_ns && pending.job->next_ns < pending.entry->next_ns)
			pending.entry->next_ns = pending.job->next_ns;
	}
	end_evaluation(all, &pending);
}

/* ---- dead jobs ---- */

static int build_snapshot(struct evaluation *evaluation, struct cw_job *job,
			  struct cw_snapshot **ret)
{
	const struct cw_leader_config *config = evaluation->all->config;
	struct cw_build build = {
		.digests = &evaluation->entry->digests,
		.refs = evaluation->refs,
		.n_refs = evaluation->n_refs,
		.thresholds = config->thresholds,
		.now_ns = evaluation->now_ns,
		.wall_ns = cw_clock_wall_ns(config->clock),
		.held_ns = evaluation->all->held_ns,
		.finds_peers = config->finds_peers,
		.awake_ns = cw_clock_awake_ns(config->clock),
		.job = job,
		.spare = &evaluation->all->spare,
		.over_limit = &evaluation->all->stats->comms_over_limit,
	};

	build.peers = config->effects->peers(config->effects->user, &build.n_peers);
	build.sees_only_itself = build.n_peers == 0;
	return cw_snapshot_build(&build, ret);
}

/* Returns the job of these processes, if it still exists. */
static struct cw_job *last_job(const struct evaluation *evaluation)
{
	struct cw_job *job;

	for (unsigned i = 0; i < evaluation->n_refs; i++) {
		uint64_t number =
			cw_process_map_job(&evaluation->entry->processes,
					   &evaluation->entry->digests, &evaluation->refs[i]);

		DL_FOREACH (evaluation->entry->jobs, job)
			if (number && job->number == number)
				return job;
	}
	return NULL;
}

/*
 * Returns one bit for each verdict about which we have sent an alert. If *id is empty, it becomes
 * the id of one such alert.
 */
static uint32_t alerted_verdicts(const struct evaluation *evaluation, const struct cw_job *job,
				 const struct cw_snapshot *snap, const struct cw_verdict_list *list,
				 char id[CW_INCIDENT_ID_LEN])
{
	const struct cw_incident_config config = { .clock = evaluation->all->config->clock,
						   .effects = evaluation->all->config->effects,
						   .uid = evaluation->entry->digests.uid,
						   .job = evaluation->entry->digests.label,
						   .self = evaluation->all->config->self };
	char before[CW_INCIDENT_ID_LEN];
	uint32_t alerted = 0;

	for (uint32_t i = 0; i < list->n; i++) {
		const struct cw_verdict *verdict = &list->v[i];
		const struct cw_verdict_key key = cw_verdict_key(snap, verdict);

		if (job && cw_job_incidents_has_alerted(&job->incidents, &key)) {
			alerted |= 1u << i;
		} else if (key.is_set &&
			   cw_incident_was_alerted(&config, snap, verdict, &key, before)) {
			alerted |= 1u << i;
			if (!*id)
				memcpy(id, before, sizeof(before));
		}
	}
	return alerted;
}

/* True if another node may have led the job and knows more about it. */
static bool is_partitioned(const struct evaluation *evaluation)
{
	return 2 * nodes_in_touch(evaluation) < evaluation->entry->digests.n_nodes ||
	       may_be_alerted_by(evaluation);
}

/* Handles a job whose visible ranks are all dead: writes its post-mortem from the known facts. */
static void evaluate_dead_job(struct evaluation *evaluation)
{
	const struct cw_leader_config *config = evaluation->all->config;
	struct cw_verdict_list list = { 0 };
	struct cw_postmortem_input input = { .digests = &evaluation->entry->digests,
					     .refs = evaluation->refs,
					     .self = config->self,
					     .uid = evaluation->entry->digests.uid };
	struct cw_snapshot *snap = NULL;
	char id[CW_INCIDENT_ID_LEN];
	struct cw_job *job;

	if (!cw_postmortem_is_due(&evaluation->entry->postmortems, &evaluation->entry->digests,
				  evaluation->refs, evaluation->n_refs, evaluation->now_ns))
		return;
	job = last_job(evaluation);
	if (build_snapshot(evaluation, job, &snap) < 0) {
		leader_log(config->effects, CW_LOG_WARN, "job=%s: no snapshot of its end",
			   evaluation->entry->digests.label);
		return;
	}
	input.snap = snap;
	input.memory = job ? &job->memory : NULL;
	input.is_partitioned = is_partitioned(evaluation);
	(void)snprintf(id, sizeof(id), "%s",
		       job ? cw_job_incidents_alerted_id(&job->incidents) : "");
	input.incident = id;
	if ((!job || cw_history_update(&job->history, snap) >= 0) &&
	    cw_verdict_compute_all(snap, &list) >= 0) {
		input.list = &list;
		input.alerted = alerted_verdicts(evaluation, job, snap, &list, id);
	}
	cw_postmortem_evaluate(&evaluation->entry->postmortems, config->effects, &input);
	if (input.list)
		cw_verdict_list_fini(&list);
	keep_memory(evaluation->all, snap);
}

static void evaluate_component(struct evaluation *evaluation)
{
	const struct cw_leader_config *config = evaluation->all->config;
	struct cw_snapshot *snap = NULL;
	struct cw_job *job = find_job(evaluation);
	bool is_all_dead = true;
	int r;

	if (cw_postmortem_is_over(&evaluation->entry->digests, evaluation->refs,
				  evaluation->n_refs))
		evaluate_dead_job(evaluation);
	for (unsigned i = 0; i < evaluation->n_refs; i++)
		is_all_dead = is_all_dead &&
			      cw_liveness_is_dead(cw_job_digests_rank(&evaluation->entry->digests,
								      &evaluation->refs[i])
							  ->liveness);
	if (is_all_dead) /* the ranks have died since an earlier attempt, and the job ends now */
		return;
	if (!job)
		job = new_job(evaluation);
	if (!job)
		/* Out of memory or over the limit: we do not watch the job. */
		return;
	job->is_seen = true;
	for (unsigned i = 0; i < evaluation->n_refs; i++)
		(void)cw_process_map_set_job(
			&evaluation->entry->processes, &evaluation->entry->digests,
			&evaluation->refs[i],
			job->number); /* if this fails, another rank finds the job */
	if (job->pass == evaluation->entry->pass || must_wait(evaluation))
		return;
	job->pass = evaluation->entry->pass;
	r = build_snapshot(evaluation, job, &snap);
	if (r < 0) {
		leader_log(config->effects, CW_LOG_WARN, "job=%s: no snapshot: %s",
			   evaluation->entry->digests.label, strerror(-r));
		return;
	}
	if (defer(evaluation, job, &snap))
		return;
	evaluate_job(evaluation, job, snap);
	end_evaluation(evaluation->all, &(struct cw_pending_evaluation){ .snap = snap,
									 .entry = evaluation->entry,
									 .job = job });
}

/*
 * Finds the components of the ranks. Communicators change rarely, so we usually reuse the
 * components of the last evaluation.
 */
static int find_components(struct cw_leader_entry *entry)
{
	struct cw_rank_ref *refs;
	unsigned n_refs, n_components;
	int r;

	if (entry->refs && entry->refs_shape == entry->digests.shape)
		return 0;
	r = cw_job_components(&entry->digests, &refs, &n_refs, &n_components);
	if (r < 0)
		return r;
	free(entry->refs);
	entry->refs = refs;
	entry->n_refs = n_refs;
	entry->refs_shape = entry->digests.shape;
	return 0;
}

void cw_job_evaluation_run(struct cw_job_evaluations *all, struct cw_leader_entry *entry,
			   int64_t now_ns)
{
	const struct cw_rank_ref *refs;
	struct cw_job *job, *tmp;
	unsigned n_refs, end;

	if (find_components(entry) < 0) {
		leader_log(all->config->effects, CW_LOG_WARN,
			   "job=%s: out of memory, not evaluated", entry->digests.label);
		return;
	}
	refs = entry->refs;
	n_refs = entry->n_refs;
	DL_FOREACH (entry->jobs, job)
		job->is_seen = false;
	entry->pass += !entry->is_partly_evaluated;
	entry->is_partly_evaluated = false;
	for (unsigned i = 0; i < n_refs; i = end) {
		struct evaluation evaluation = {
			.all = all, .entry = entry, .refs = &refs[i], .now_ns = now_ns
		};

		for (end = i; end < n_refs && refs[end].component == refs[i].component;)
			end++;
		evaluation.n_refs = end - i;
		evaluate_component(&evaluation);
	}
	if (entry->is_partly_evaluated)
		entry->next_ns = now_ns;
	cw_process_map_sweep(&entry->processes);
	if (!entry->is_partly_evaluated)
		cw_postmortem_sweep(&entry->postmortems);
	DL_FOREACH_SAFE (entry->jobs, job, tmp) {
		/*
		 * Ranks that are out of reach, or that their node no longer watches, have not
		 * ended.
		 */
		if (!job->is_seen)
			cw_job_evaluation_end_job(all, entry, job,
						  !cw_job_digests_untracked(&entry->digests) &&
							  !entry->digests.has_forgotten);
		else if (job->next_ns && job->next_ns < entry->next_ns)
			entry->next_ns = job->next_ns;
	}
	entry->digests.has_forgotten = false;
}
