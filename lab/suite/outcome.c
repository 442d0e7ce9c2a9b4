/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/slow/slow.h"
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

int outcome_add_wait(struct outcome *o, const struct outcome_wait *wait)
{
	struct outcome_wait *more =
		reallocarray(o->healthy_waits, o->n_healthy_waits + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	o->healthy_waits = more;
	more[o->n_healthy_waits++] = *wait;
	return 0;
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
	o->also = calloc(1, sizeof(*o->also));
	return o->also;
}

static struct outcome *append(struct outcome **last)
{
	while (*last)
		last = &(*last)->also;
	*last = calloc(1, sizeof(**last));
	return *last;
}

struct outcome *outcome_next_notice(struct outcome *o)
{
	struct outcome *next = append(&o->notices);

	if (next)
		next->is_notice = true;
	return next;
}

struct outcome *outcome_next_postmortem(struct outcome *o)
{
	return append(&o->postmortems);
}
