/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/outcome.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/slow/slow.h"
#include "common/or_exit/or_exit.h"
#include "model/snapshot.h"

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
	free_outcomes(o->postmortems);
	free(o->culprits);
	free(o->healthy_waits);
	free(o->ranks);
	*o = (struct outcome){ 0 };
}

void outcome_add_wait(struct outcome *o, const struct outcome_wait *wait)
{
	o->healthy_waits =
		cw_or_exit(reallocarray(o->healthy_waits, o->n_healthy_waits + 1, sizeof(*wait)));
	o->healthy_waits[o->n_healthy_waits++] = *wait;
}

int cw_outcome_note_slow(struct outcome *o, const struct cw_snapshot *snap)
{
	struct cw_slow_list list;
	int r = cw_slow_find(snap, &list);

	if (r < 0 || !list.n)
		return r;
	o->culprits = cw_or_exit(calloc(list.n, sizeof(*o->culprits)));
	o->is_slow = true;
	o->verdict_class = CW_CLASS_SLOW;
	o->confidence = list.v[0].confidence;
	for (uint32_t i = 0; i < list.n; i++)
		o->culprits[o->n_culprits++] = snap->ranks[list.v[i].rank].rank;
	(void)snprintf(o->summary, sizeof(o->summary), "rank %d comes late",
		       snap->ranks[list.v[0].rank].rank);
	return 0;
}

struct outcome *outcome_next(struct outcome *o)
{
	if (!o->is_alert)
		return o;
	while (o->also)
		o = o->also;
	o->also = cw_or_exit(calloc(1, sizeof(*o->also)));
	return o->also;
}

static struct outcome *append(struct outcome **last)
{
	while (*last)
		last = &(*last)->also;
	*last = cw_or_exit(calloc(1, sizeof(**last)));
	return *last;
}

struct outcome *outcome_next_notice(struct outcome *o)
{
	struct outcome *next = append(&o->notices);

	next->is_notice = true;
	return next;
}

struct outcome *outcome_next_postmortem(struct outcome *o)
{
	return append(&o->postmortems);
}
