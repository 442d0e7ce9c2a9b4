/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/digest_round.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/absent.h"
#include "daemon/digest.h"

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

/* absent: the route, where no process of it has registered; else NULL */
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
	};
	struct cw_digest digest;

	if (cw_digest_make(&source, &digest) < 0) {
		log_warn("digest of job=%s: out of memory, skipped",
			 absent ? absent->label : v[0]->label);
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

void cw_digest_round(struct cw_digest_rounds *rounds, struct cw_process *table, bool only_urgent,
		     int64_t now_ns)
{
	_cleanup_(freep) struct cw_process **v = NULL;
	uint32_t max = HASH_COUNT(table);

	if (!only_urgent)
		digest_absent(rounds, table, now_ns);
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
