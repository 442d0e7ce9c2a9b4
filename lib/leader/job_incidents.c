/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of a decision's verdict identifies the incident that the decision is about. We identify
 * the ranks of an incident by rank, pid and start, because indices change from snapshot to
 * snapshot. A verdict about any rank of an open incident is a consequence and raises nothing.
 * Before a verdict becomes a hang, we only track the worst verdict.
 */
#include "leader/job_incidents.h"

#include <stdlib.h>
#include <string.h>

/* ---- affected ranks ---- */

/* Returns the rank's identity: facts that are equal in all snapshots. Indices are not. */
static struct cw_job_incident_rank identity(const struct cw_snapshot *snap, uint32_t rank)
{
	const struct cw_snap_rank *r = &snap->ranks[rank];

	return (struct cw_job_incident_rank){ .start_ticks = r->start_ticks,
					      .rank = r->rank,
					      .pid = r->pid };
}

static int compare_ranks(const void *a, const void *b)
{
	const struct cw_job_incident_rank *x = a, *y = b;

	if (x->start_ticks != y->start_ticks)
		return x->start_ticks < y->start_ticks ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/*
 * Notes the ranks of the incident. If we are out of memory, the incident has no ranks, and a second
 * alert may follow. If the verdict blocks no rank, we note no ranks, because the same ranks may
 * well hang for another reason.
 */
static void note_ranks(struct cw_job_incident *i, const struct cw_snapshot *snap,
		       const struct cw_verdict *verdict)
{
	uint32_t n = 0;

	free(i->ranks);
	i->ranks = NULL;
	i->n_ranks = 0;
	if (cw_verdict_is_silent(verdict))
		return;
	i->ranks = calloc((size_t)verdict->n_culprits + verdict->n_victims + 1, sizeof(*i->ranks));
	if (!i->ranks)
		return;
	for (uint32_t k = 0; k < verdict->n_culprits; k++)
		i->ranks[n++] = identity(snap, verdict->culprits[k].rank);
	for (uint32_t k = 0; k < verdict->n_victims; k++)
		i->ranks[n++] = identity(snap, verdict->victims[k]);
	qsort(i->ranks, n, sizeof(*i->ranks), compare_ranks);
	i->n_ranks = n;
}

static bool concerns(const struct cw_job_incident *i, const struct cw_snapshot *snap, uint32_t rank)
{
	struct cw_job_incident_rank id = identity(snap, rank);

	return i->n_ranks &&
	       bsearch(&id, i->ranks, i->n_ranks, sizeof(*i->ranks), compare_ranks) != NULL;
}

/*
 * True if the verdict is about invisible ranks. Two such verdicts may be about the same rank, but
 * their communicators have only invisible ranks in common. So we cannot tell.
 */
static bool is_about_unseen(const struct cw_verdict *verdict)
{
	return verdict->verdict_class == CW_CLASS_UNKNOWN &&
	       verdict->detail == CW_DETAIL_NOT_VISIBLE;
}

/*
 * True if a rank of the verdict is in an open incident, or may be one of its invisible ranks. A
 * notice alerted no user, so only further notices are consequences of it.
 */
static bool is_consequence(const struct cw_job_incidents *all, const struct cw_snapshot *snap,
			   const struct cw_verdict *verdict, bool is_page)
{
	for (uint32_t i = 0; i < all->n; i++) {
		const struct cw_job_incident *one = &all->v[i];

		if (!cw_incident_is_open(one->incident) ||
		    (is_page && cw_incident_is_noted(one->incident)))
			continue;
		if (one->is_about_unseen && is_about_unseen(verdict))
			return true;
		if (cw_incident_explains_wait(one->incident, snap, verdict))
			return true;
		for (uint32_t k = 0; k < verdict->n_culprits; k++)
			if (concerns(one, snap, verdict->culprits[k].rank))
				return true;
		for (uint32_t k = 0; k < verdict->n_victims; k++)
			if (concerns(one, snap, verdict->victims[k]))
				return true;
	}
	return false;
}

/* ---- the incident of a decision ---- */

static struct cw_job_incident *find_open(struct cw_job_incidents *all,
					 const struct cw_verdict_key *key)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (cw_incident_is_open(all->v[i].incident) &&
		    cw_verdict_key_is_same(cw_incident_key(all->v[i].incident), key))
			return &all->v[i];
	return NULL;
}

/* Returns the incident that alerted about wrong data, if its mismatch now blocks a rank. */
static struct cw_job_incident *find_wrong_data(struct cw_job_incidents *all,
					       const struct cw_verdict *verdict,
					       const struct cw_verdict_key *key)
{
	if (!key->is_waited)
		return NULL;
	for (uint32_t i = 0; i < all->n; i++)
		if (cw_incident_is_wrong_data(all->v[i].incident, verdict, key))
			return &all->v[i];
	return NULL;
}

/* Returns a closed or new incident. NULL = too many incidents are open, or out of memory. */
static struct cw_job_incident *find_free(struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (!cw_incident_is_open(all->v[i].incident))
			return &all->v[i];
	if (all->n == CW_VERDICT_LIST_MAX)
		return NULL;
	if (cw_incident_new(&all->config, &all->v[all->n].incident) < 0)
		return NULL;
	return &all->v[all->n++];
}

static void step_one(struct cw_job_incidents *all, const struct cw_snapshot *snap,
		     const struct cw_verdict *verdict, const struct cw_stall_decision *decision,
		     bool is_worst)
{
	struct cw_job_incident *known = find_open(all, &decision->key), *new;
	bool is_page = decision->phase == CW_STALL_HANG, is_due = is_page || decision->is_noticed;

	if (known && is_page && cw_incident_is_noted(known->incident)) {
		/* The user already has an alert about the cause. */
		if (is_consequence(all, snap, verdict, is_page))
			return;
		known->is_about_unseen = is_about_unseen(verdict);
		note_ranks(known, snap, verdict);
	}
	if (known) {
		cw_incident_step(known->incident, snap, verdict, decision);
		return;
	}
	known = find_wrong_data(all, verdict, &decision->key);
	if (known) {
		if (is_page) {
			note_ranks(known, snap, verdict);
			cw_incident_holds_up(known->incident, snap, verdict, decision);
		}
		return;
	}
	/* Before an alert is due, we only track the worst verdict. */
	if ((!is_worst && !is_due) || is_consequence(all, snap, verdict, is_page))
		return;
	new = find_free(all);
	if (!new) {
		leader_log(all->config.effects, CW_LOG_DEBUG,
			   "job=%s: no room for another incident", all->config.job);
		return;
	}
	if (is_due) {
		new->is_about_unseen = is_about_unseen(verdict);
		note_ranks(new, snap, verdict);
	}
	cw_incident_step(new->incident, snap, verdict, decision);
}

void cw_job_incidents_step(struct cw_job_incidents *all, const struct cw_snapshot *snap,
			   const struct cw_verdict_list *list,
			   const struct cw_stall_decision *decision)
{
	struct cw_stall_decision quiet = { .phase = CW_STALL_QUIET,
					   .resolved_key = decision[0].resolved_key,
					   .resolved_after_ns = decision[0].resolved_after_ns };
	struct cw_job_incident *one;

	for (uint32_t i = 0; i < list->n; i++) {
		one = decision[i].moved_from.is_set && decision[i].key.is_set
			      ? find_open(all, &decision[i].moved_from)
			      : NULL;
		if (one)
			cw_incident_move(one->incident, &decision[i].key);
	}
	one = find_open(all, &quiet.resolved_key);
	if (one)
		cw_incident_step(one->incident, snap, &list->v[0], &quiet);
	for (uint32_t i = 0; i < list->n; i++)
		step_one(all, snap, &list->v[i], &decision[i], i == 0);
}

bool cw_job_incidents_are_writing(const struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (cw_incident_is_writing(all->v[i].incident))
			return true;
	return false;
}

bool cw_job_incidents_write_on(struct cw_job_incidents *all, const struct cw_snapshot *snap)
{
	for (uint32_t i = 0; i < all->n; i++) {
		if (!cw_incident_is_writing(all->v[i].incident))
			continue;
		cw_incident_write_on(all->v[i].incident, snap);
		break;
	}
	return cw_job_incidents_are_writing(all);
}

/* ---- all incidents ---- */

void cw_job_incidents_tick(struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		cw_incident_tick(all->v[i].incident);
}

void cw_job_incidents_end(struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		cw_incident_end(all->v[i].incident);
}

void cw_job_incidents_undelivered(struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		cw_incident_undelivered(all->v[i].incident);
}

struct cw_incident *cw_job_incidents_find(const struct cw_job_incidents *all, const char *id)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (*id && !strcmp(cw_incident_id(all->v[i].incident), id))
			return all->v[i].incident;
	return NULL;
}

const char *cw_job_incidents_id(const struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (cw_incident_is_open(all->v[i].incident))
			return cw_incident_id(all->v[i].incident);
	return "";
}

const char *cw_job_incidents_alerted_id(const struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (cw_incident_state(all->v[i].incident) == CW_INCIDENT_ALERTED)
			return cw_incident_id(all->v[i].incident);
	return "";
}

bool cw_job_incidents_has_alerted(const struct cw_job_incidents *all,
				  const struct cw_verdict_key *key)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (cw_incident_state(all->v[i].incident) == CW_INCIDENT_ALERTED &&
		    cw_verdict_key_is_same(cw_incident_key(all->v[i].incident), key))
			return true;
	return false;
}

void cw_job_incidents_fini(struct cw_job_incidents *all)
{
	for (uint32_t i = 0; i < all->n; i++) {
		cw_incident_free(all->v[i].incident);
		free(all->v[i].ranks);
	}
	all->n = 0;
}
