/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of jobs without a fault from outside. A rank's watchdog, like PyTorch's, aborts the rank if
 * a call stays open for too long. If a rank has failed, its node's launcher asks the other ranks of
 * the node to end. The launchers of other nodes do the same later. After a grace period they kill
 * the remaining ranks. A SIGTERM handler that saves the model runs only between calls. So a host
 * inside a call never runs it.
 */
#include <signal.h>

#include "lab/vjob/cluster_state.h"
#include "model/facts.h"

#define WATCHDOG_EVERY_NS (1 * S)
/* A launcher checks its processes at this interval. It signals them one after the other. */
#define LAUNCHER_EVERY_MS 500u
#define LAUNCHER_SPREAD_MS 20u

void end_schedule(struct cluster *c)
{
	for (uint32_t i = 0; c->s->n_watchdogs && i < c->s->n_ranks; i++)
		cluster_at(c, c->now_ns + (int64_t)cluster_random(c, 1000) * MS, EVENT_WATCHDOG,
			   &c->ranks[i], NULL, 0);
}

static bool must_abort(const struct rank *r, const struct suite_watchdog *w)
{
	const struct cluster *c = r->c;

	for (uint32_t f = 0; f < c->s->n_families; f++) {
		struct member *m = r->members[f];

		if (!m || (w->family != SUITE_NONE && w->family != f))
			continue;
		if (m->async_error)
			return true;
		if (m->op_index && m->first_open <= m->op_index &&
		    c->now_ns - member_op(m, m->first_open)->enter_ns >= w->after_ns)
			return true;
	}
	return false;
}

static bool is_barked_at(const struct rank *r)
{
	const struct suite_scenario *s = r->c->s;

	for (uint32_t i = 0; i < s->n_watchdogs; i++)
		if (cw_suite_set_has(&s->watchdogs[i].set, r->index) &&
		    must_abort(r, &s->watchdogs[i]))
			return true;
	return false;
}

void end_on_watchdog(struct rank *r)
{
	if (r->ended_ns)
		return;
	if (!r->is_frozen && is_barked_at(r))
		host_die(r, CW_LIVE_KILLED, SIGABRT);
	else
		cluster_at(r->c, r->c->now_ns + WATCHDOG_EVERY_NS, EVENT_WATCHDOG, r, NULL, 0);
}

static bool has_failed(const struct rank *r)
{
	return r->liveness == CW_LIVE_KILLED || (r->liveness == CW_LIVE_EXITED && r->exit_code);
}

void end_on_death(struct rank *r)
{
	struct cluster *c = r->c;
	int64_t noticed_ns;

	if (!c->s->launcher.is_there || c->is_ending || !has_failed(r))
		return;
	c->is_ending = true;
	noticed_ns = c->now_ns + (int64_t)cluster_random(c, LAUNCHER_EVERY_MS) * MS;
	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		struct rank *o = &c->ranks[i];
		int64_t apart_ns = o->node == r->node ? 0 : c->s->launcher.apart_ns;

		if (!o->ended_ns)
			cluster_at(c,
				   noticed_ns + apart_ns +
					   (int64_t)cluster_random(c, LAUNCHER_SPREAD_MS) * MS,
				   EVENT_ASK, o, NULL, 0);
	}
}

/* True if the rank runs its SIGTERM handler. */
static bool runs_program(const struct rank *r)
{
	return r->host == HOST_READY || (r->host == HOST_BUSY && r->busy_by);
}

void end_on_ask(struct rank *r)
{
	struct cluster *c = r->c;
	const struct suite_launcher *l = &c->s->launcher;

	if (r->ended_ns)
		return;
	if (!r->is_frozen && !l->saves_ns) {
		host_die(r, CW_LIVE_KILLED, SIGTERM);
		return;
	}
	if (!r->is_frozen && runs_program(r)) {
		r->host = HOST_BUSY;
		r->busy_by = "io";
		r->wake_id++;
		cluster_at(c, c->now_ns + l->saves_ns, EVENT_DIE, r, NULL, SIGTERM);
	}
	cluster_at(c, c->now_ns + l->grace_ns, EVENT_DIE, r, NULL, SIGKILL);
}
