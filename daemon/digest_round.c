/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/digest_round.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
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

static void digest_route(struct cw_digest_rounds *rounds, struct cw_process **v, uint32_t n,
			 int64_t now_ns)
{
	struct cw_digest_source source = {
		.node = rounds->node,
		.epoch = rounds->epoch,
		.number = rounds->number + 1,
		.processes = v,
		.n_processes = n,
		.now_ns = now_ns,
	};
	struct cw_digest digest;

	if (cw_digest_make(&source, &digest) < 0) {
		log_warn("digest of job=%s: out of memory, skipped", v[0]->label);
		return;
	}
	rounds->number++;
	rounds->on_digest(&digest.msg, rounds->user);
	cw_digest_fini(&digest);
}

void cw_digest_round(struct cw_digest_rounds *rounds, struct cw_process *table, bool only_urgent,
		     int64_t now_ns)
{
	_cleanup_(freep) struct cw_process **v = NULL;
	uint32_t max = HASH_COUNT(table);

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
			digest_route(rounds, v, collect_route(rounds, table, p, v, max), now_ns);
	}
}
