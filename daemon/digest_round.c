/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/digest_round.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/absent.h"
#include "daemon/digest.h"
#include "daemon/untracked.h"

/* Those of first's route that are not in a digest of this round yet. */
static uint32_t collect_route(struct cw_digest_rounds *rounds, struct cw_process *table,
			      const struct cw_process *first, struct cw_process **v, uint32_t max)
{
	uint32_t n = 0;

	for (struct cw_process *p = table; p && n < max; p = p->hh.next) {
		if (p->route != first->route || p->digest_round == rounds->round)
			continue;
		p->digest_round = rounds->round;
		p->is_urgent = false;
		v[n++] = p;
	}
	return n;
}

/* Jobs of which no rank is watched here, but some are untracked: so many are told of a round. */
#define MAX_UNTRACKED_JOBS 256u

/* absent: the route, where no process of it is watched; else NULL */
static void digest_route(struct cw_digest_rounds *rounds, struct cw_process **v, uint32_t n,
			 const struct cw_absent_route *absent, int64_t now_ns)
{
	struct cw_digest_source source = {
		.node = rounds->node,
		.epoch = rounds->epoch,
		.number = rounds->number + 1,
		.processes = v,
		.n_processes = n,
		.absent = rounds->absent,
		.route = absent,
		.now_ns = now_ns,
		.held_ns = rounds->held_ns,
	};
	const char *label = absent ? absent->label : v[0]->label;
	struct cw_digest digest;

	if (rounds->untracked)
		source.untracked = cw_untracked_of_job(rounds->untracked,
						       absent ? absent->uid : v[0]->uid, label);
	if (cw_digest_make(&source, &digest) < 0) {
		log_warn("digest of job=%s: out of memory, skipped", label);
		return;
	}
	rounds->number++;
	rounds->on_digest(&digest.msg, rounds->user);
	cw_digest_fini(&digest);
}

static bool has_route(struct cw_process *table, uint64_t route)
{
	for (struct cw_process *p = table; p; p = p->hh.next)
		if (p->route == route)
			return true;
	return false;
}

/* Routes of which nobody has registered here. */
static void digest_absent(struct cw_digest_rounds *rounds, struct cw_process *table, int64_t now_ns)
{
	struct cw_absent_route route;

	for (unsigned i = 0; rounds->absent && cw_absent_route(rounds->absent, i, &route); i++)
		if (!has_route(table, route.route))
			digest_route(rounds, NULL, 0, &route, now_ns);
}

struct untracked_jobs {
	struct cw_process *table;
	struct cw_absent_route v[MAX_UNTRACKED_JOBS];
	unsigned n;
};

static void add_untracked_job(const struct cw_untracked_entry *entry, void *user)
{
	struct untracked_jobs *jobs = user;

	if (!*entry->label || jobs->n == MAX_UNTRACKED_JOBS)
		return;
	for (unsigned i = 0; i < jobs->n; i++)
		if (jobs->v[i].uid == entry->uid && !strcmp(jobs->v[i].label, entry->label))
			return;
	for (const struct cw_process *p = jobs->table; p; p = p->hh.next)
		if (p->uid == entry->uid && p->route && !strcmp(p->label, entry->label))
			return;
	jobs->v[jobs->n++] =
		(struct cw_absent_route){ .route = cw_job_route(entry->label, entry->uid),
					  .label = entry->label,
					  .uid = entry->uid };
}

/* Their leader, which sees ranks of other nodes, says that these are not visible. */
static void digest_untracked(struct cw_digest_rounds *rounds, struct cw_process *table,
			     int64_t now_ns)
{
	struct untracked_jobs jobs = { .table = table };

	if (rounds->untracked)
		cw_untracked_each(rounds->untracked, add_untracked_job, &jobs);
	for (unsigned i = 0; i < jobs.n; i++)
		digest_route(rounds, NULL, 0, &jobs.v[i], now_ns);
}

void cw_digest_round(struct cw_digest_rounds *rounds, struct cw_process *table, bool only_urgent,
		     int64_t now_ns)
{
	_cleanup_(freep) struct cw_process **v = NULL;
	uint32_t max = HASH_COUNT(table);

	if (!only_urgent)
		digest_absent(rounds, table, now_ns);
	if (!only_urgent)
		digest_untracked(rounds, table, now_ns);
	if (max == 0)
		return;
	if (max > CW_MSG_MAX_RANKS)
		max = CW_MSG_MAX_RANKS;
	v = calloc(max, sizeof(struct cw_process *));
	if (!v)
		return; /* the next round tries again */
	rounds->round++;
	for (struct cw_process *p = table; p; p = p->hh.next) {
		if (!p->route || p->digest_round == rounds->round)
			continue;
		if (!only_urgent || p->is_urgent)
			digest_route(rounds, v, collect_route(rounds, table, p, v, max), NULL,
				     now_ns);
	}
}
