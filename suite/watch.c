/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a leader with a clock of its own: advance the cluster by a second, take a snapshot,
 * ask for the verdicts, let patience decide, note what alerts. In scenarios that leap, stretches in
 * which all is well are left out.
 */
#include "suite/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/slow/slow.h"
#include "analysis/stall/stall.h"
#include "suite/cluster/cluster.h"
#include "suite/watch_alerts.h"

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define LOOK_EVERY_NS (1 * S)
#define WINDOWS_TAKE_NS (40 * MS)
#define WINDOWS_EVERY_NS (1 * S)
/* How long is listened after the last incident that is expected. */
#define SETTLE_NS (90 * S)
/* A scenario that leaps shows so much of a healthy stretch at its beginning and its end. */
#define SHOWN_NS (40 * S)

struct watch {
	const struct suite_scenario *s;
	struct cluster *cluster;
	struct cw_stall *stall;
	int64_t now_ns, start_ns, windows_ns, fault_ns;
	int64_t well_ns;  /* since when all is well */
	int64_t alert_ns; /* the last */
	bool is_stalled;  /* as of the last look */
	struct alerts alerts, notices;
	uint32_t daemons_life;
	const struct watch_eyes *eyes;
	struct outcome *out;
};

static void free_outcomes(struct outcome *o)
{
	struct outcome *next;

	for (; o; o = next) {
		next = o->also;
		free(o->culprits);
		free(o);
	}
}

void cw_outcome_fini(struct outcome *o)
{
	free_outcomes(o->also);
	free_outcomes(o->notices);
	free(o->culprits);
	*o = (struct outcome){ 0 };
}

int cw_outcome_note_slow(struct outcome *o, const struct cw_snapshot *snap)
{
	struct cw_slow_list list;
	int r = cw_slow_find(snap, &list);

	if (r < 0 || !list.n)
		return r;
	o->culprits = calloc(list.n, sizeof(*o->culprits));
	if (!o->culprits)
		return -ENOMEM;
	o->is_slow = true;
	o->klass = CW_CLASS_SLOW;
	o->confidence = list.v[0].confidence;
	for (uint32_t i = 0; i < list.n; i++)
		o->culprits[o->n_culprits++] = snap->ranks[list.v[i].rank].rank;
	(void)snprintf(o->summary, sizeof(o->summary), "rank %d comes late",
		       snap->ranks[list.v[0].rank].rank);
	return 0;
}

/* More than the first alert matters. */
static bool watches_on(const struct watch *w)
{
	return suite_n_incidents(w->s) > 1 || w->s->is_alone || w->eyes->is_watching_on;
}

struct outcome *outcome_next(struct outcome *o)
{
	if (!o->is_alert)
		return o;
	while (o->also)
		o = o->also;
	o->also = calloc(1, sizeof(*o->also));
	return o->also;
}

struct outcome *outcome_next_notice(struct outcome *o)
{
	struct outcome **last = &o->notices;

	while (*last)
		last = &(*last)->also;
	*last = calloc(1, sizeof(**last));
	if (*last)
		(*last)->is_notice = true;
	return *last;
}

/* What was said, in the place that was made for it. */
static int say(const struct watch *w, const struct cw_snapshot *snap, const struct cw_verdict *v,
	       const struct cw_stall_decision *d, struct outcome *o)
{
	o->culprits = calloc(v->n_culprits + 1, sizeof(*o->culprits));
	if (!o->culprits)
		return -ENOMEM;
	o->after_ns = w->now_ns - (w->fault_ns ? w->fault_ns : w->start_ns);
	o->klass = v->klass;
	o->confidence = d->confidence;
	o->hang = d->hang;
	o->detail = v->detail;
	(void)snprintf(o->summary, sizeof(o->summary), "%s", v->summary);
	for (uint32_t i = 0; i < v->n_culprits; i++)
		o->culprits[o->n_culprits++] = snap->ranks[v->culprits[i].rank].rank;
	return 0;
}

static int note_alert(struct watch *w, const struct cw_snapshot *snap, const struct cw_verdict *v,
		      const struct cw_stall_decision *d)
{
	struct outcome *o;

	if (!alerts_is_new(&w->alerts, snap, v, d))
		return 0;
	o = outcome_next(w->out);
	if (!o || alerts_add(&w->alerts, w->s, snap, v, d) < 0)
		return -ENOMEM;
	w->alert_ns = w->now_ns;
	o->is_alert = true;
	return say(w, snap, v, d, o);
}

static int note_notice(struct watch *w, const struct cw_snapshot *snap, const struct cw_verdict *v,
		       const struct cw_stall_decision *d)
{
	struct outcome *o;

	if (w->s->has_no_notices || !alerts_is_new(&w->notices, snap, v, d) ||
	    !alerts_is_new(&w->alerts, snap, v, d))
		return 0;
	o = outcome_next_notice(w->out);
	if (!o || alerts_add(&w->notices, w->s, snap, v, d) < 0)
		return -ENOMEM;
	return say(w, snap, v, d, o);
}

static int compute(const struct watch *w, const struct cw_snapshot *snap,
		   struct cw_verdict_list *ret)
{
	struct cw_verdict_list one = { .n = 1 };
	int r;

	if (watches_on(w))
		return cw_verdict_compute_all(snap, ret);
	r = cw_verdict_compute(snap, &one.v[0]);
	if (r == 0)
		*ret = one;
	return r;
}

static int fetch_windows(struct watch *w, const struct cw_snapshot *snap,
			 const struct cw_verdict_list *list, const struct cw_stall_decision *d,
			 int64_t *ret_next)
{
	bool is_time = !w->windows_ns || w->now_ns - w->windows_ns >= WINDOWS_EVERY_NS, any = false;
	int r = 0;

	for (uint32_t i = 0; r == 0 && is_time && i < list->n; i++) {
		if (!d[i].want_windows || !list->v[i].n_wanted)
			continue;
		if (!any)
			r = cluster_run(w->cluster, w->now_ns + WINDOWS_TAKE_NS);
		any = true;
		if (r == 0)
			r = cluster_fetch_windows(w->cluster, snap, list->v[i].wanted,
						  list->v[i].n_wanted);
	}
	if (any) {
		w->windows_ns = w->now_ns;
		w->now_ns += WINDOWS_TAKE_NS;
		*ret_next = w->now_ns;
	}
	return r;
}

/* One look; *ret_next: when to look again. */
static int look(struct watch *w, int64_t *ret_next)
{
	struct cw_stall_decision d[CW_VERDICT_LIST_MAX] = { 0 };
	struct cw_snapshot *snap = NULL;
	struct cw_verdict_list list;
	int r;

	*ret_next = w->now_ns + LOOK_EVERY_NS;
	if (cluster_is_over(w->cluster))
		return 0;
	r = cluster_snapshot(w->cluster, &snap);
	if (r == 0 && w->eyes->change_snapshot)
		r = w->eyes->change_snapshot(w->eyes->user, &snap);
	if (r == 0)
		r = compute(w, snap, &list);
	if (r < 0) {
		(void)cw_snapshot_free(snap);
		return r;
	}
	cw_stall_step_all(w->stall, snap, list.v, list.n, d);
	w->out->looks++;
	w->is_stalled = false;
	alerts_close(&w->alerts, &d[0].resolved_key);
	alerts_close(&w->notices, &d[0].resolved_key);
	for (uint32_t i = 0; r == 0 && i < list.n; i++) {
		if (d[i].phase >= CW_STALL_STALLED) {
			w->well_ns = w->now_ns;
			w->is_stalled = true;
		}
		if (d[i].next_ns > w->now_ns && d[i].next_ns < *ret_next)
			*ret_next = d[i].next_ns;
		if (cluster_is_cut_off(w->cluster))
			continue;
		if (d[i].phase == CW_STALL_HANG)
			r = note_alert(w, snap, &list.v[i], &d[i]);
		else if (d[i].is_noticed)
			r = note_notice(w, snap, &list.v[i], &d[i]);
	}
	if (r == 0 && !cluster_is_cut_off(w->cluster))
		r = fetch_windows(w, snap, &list, d, ret_next);
	cw_verdict_list_fini(&list);
	(void)cw_snapshot_free(snap);
	return r;
}

/* A job that was started anew has another leader's ear: new processes, new comms, no memory. */
static int restart(struct watch *w, struct cw_err *err)
{
	int64_t at = cluster_restart_ns(w->cluster);

	w->cluster = cluster_free(w->cluster);
	w->stall = cw_stall_free(w->stall);
	w->stall = cw_stall_new();
	if (!w->stall)
		return -ENOMEM;
	w->now_ns = w->well_ns = at;
	w->windows_ns = 0;
	w->daemons_life = 0;
	return cluster_new(w->s, at, err, &w->cluster);
}

/* While no daemon runs nobody looks, and a new one remembers nothing. */
static int mind_daemons(struct watch *w, int64_t *ret_next)
{
	int64_t back = cluster_daemons_back_ns(w->cluster);

	if (back) {
		*ret_next = back;
		return 0;
	}
	if (w->daemons_life != cluster_daemons_life(w->cluster)) {
		w->daemons_life = cluster_daemons_life(w->cluster);
		w->windows_ns = 0;
		w->stall = cw_stall_free(w->stall);
		w->stall = cw_stall_new();
		if (!w->stall)
			return -ENOMEM;
	}
	return look(w, ret_next);
}

/* Nobody has waited for a while, everybody steps: on to the next thing that happens. */
static void leap(struct watch *w, int64_t *next)
{
	int64_t until = cluster_next_fault_ns(w->cluster), end = w->start_ns + w->s->run_ns;

	if (!cluster_is_well(w->cluster))
		w->well_ns = w->now_ns;
	until = (until < end ? until : end) - SHOWN_NS;
	if (w->now_ns - w->well_ns < SHOWN_NS || until - *next < SHOWN_NS)
		return;
	until = (until - *next) / S * S;
	cluster_leap(w->cluster, until);
	w->out->leapt_ns += until;
	*next += until;
	w->well_ns = *next;
}

static void note_faults(struct watch *w)
{
	bool all;
	int64_t ns = cluster_fault_ns(w->cluster, &all);

	if (!w->fault_ns)
		w->fault_ns = ns;
	if (all)
		w->out->is_fault_missing = false;
}

/* All has been heard that is waited for, and nothing since. */
static bool is_enough(const struct watch *w)
{
	if (!watches_on(w))
		return w->alerts.n > 0;
	return w->alerts.n > 0 && w->alerts.n >= suite_n_incidents(w->s) &&
	       w->now_ns - w->alert_ns >= SETTLE_NS;
}

/* The scenario is over, and so is what is listened for after an alert. */
static bool is_over(const struct watch *w)
{
	bool is_settling =
		w->eyes->is_watching_on && w->alerts.n > 0 && w->now_ns - w->alert_ns < SETTLE_NS;

	if (w->now_ns - w->start_ns < w->s->run_ns)
		return false;
	if (cw_suite_waits_for_page(w->s) && !w->alerts.n && w->is_stalled &&
	    w->now_ns - w->start_ns < w->s->run_ns + WATCH_UNTIL_PAGE_NS)
		return false;
	return !is_settling;
}

static int run(struct watch *w, struct cw_err *err)
{
	int64_t next = 0;
	int r = cluster_new(w->s, w->start_ns, err, &w->cluster);

	w->stall = cw_stall_new();
	w->well_ns = w->start_ns;
	if (r == 0 && !w->stall)
		r = -ENOMEM;
	for (; r == 0 && !is_over(w); w->now_ns = next) {
		r = cluster_run(w->cluster, w->now_ns);
		if (r == -EINVAL)
			return cw_err_set(err, EINVAL, "%s:%u: a group or program is too large",
					  w->s->file, w->s->line);
		if (r == 0)
			r = mind_daemons(w, &next);
		note_faults(w);
		if (r < 0 || is_enough(w))
			break;
		if (cluster_restart_ns(w->cluster) && next >= cluster_restart_ns(w->cluster)) {
			next = cluster_restart_ns(w->cluster);
			r = restart(w, err);
		} else if (w->s->is_leaping) {
			leap(w, &next);
		}
	}
	return r;
}

/* ---- who comes late, asked where the scenario expects somebody to ---- */

static int fetch_all_windows(struct watch *w, const struct cw_snapshot *snap)
{
	uint32_t *comms = calloc(snap->n_comms + 1, sizeof(*comms));
	int r;

	if (!comms)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		comms[c] = c;
	r = cluster_fetch_windows(w->cluster, snap, comms, snap->n_comms);
	free(comms);
	return r;
}

static int look_for_slow(struct watch *w)
{
	struct cw_snapshot *snap = NULL;
	int r = cluster_snapshot(w->cluster, &snap);

	if (r == 0)
		r = fetch_all_windows(w, snap);
	(void)cw_snapshot_free(snap);
	snap = NULL;
	if (r == 0)
		r = cluster_snapshot(w->cluster, &snap);
	if (r == 0)
		r = cw_outcome_note_slow(w->out, snap);
	(void)cw_snapshot_free(snap);
	return r;
}

int cw_watch(const struct suite_scenario *s, struct cw_err *err, struct outcome *ret)
{
	static const struct watch_eyes plain = { 0 };

	return cw_watch_with(s, &plain, err, ret);
}

int cw_watch_with(const struct suite_scenario *s, const struct watch_eyes *eyes, struct cw_err *err,
		  struct outcome *ret)
{
	struct outcome out = { .is_fault_missing = s->n_faults > 0 };
	struct watch w = { .s = s,
			   .start_ns = CLUSTER_ORIGIN_NS,
			   .now_ns = CLUSTER_ORIGIN_NS,
			   .eyes = eyes,
			   .out = &out };
	int r = run(&w, err);

	if (r == 0 && !out.is_alert && cw_suite_expects_slow(s))
		r = look_for_slow(&w);
	out.is_well = r == 0 && !out.is_alert && w.cluster && cluster_is_well(w.cluster);
	w.cluster = cluster_free(w.cluster);
	w.stall = cw_stall_free(w.stall);
	alerts_fini(&w.alerts);
	alerts_fini(&w.notices);
	if (r < 0) {
		cw_outcome_fini(&out);
		return r;
	}
	*ret = out;
	return 0;
}
