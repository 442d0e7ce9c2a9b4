/* SPDX-License-Identifier: Apache-2.0 */
#include "suite/watch_alerts.h"

#include <errno.h>
#include <stdlib.h>

/* Ranks that tests put beside those of the scenario have labels, too. */
#define COMPANY 64u

static bool concerns(const struct alert *a, const struct cw_snapshot *snap, uint32_t rank)
{
	int32_t label = snap->ranks[rank].rank;

	return label >= 0 && (uint32_t)label < a->n_labels && a->concerns[label];
}

static bool is_consequence(const struct alert *a, const struct cw_snapshot *snap,
			   const struct cw_verdict *v)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (concerns(a, snap, v->culprits[i].rank))
			return true;
	for (uint32_t i = 0; i < v->n_victims; i++)
		if (concerns(a, snap, v->victims[i]))
			return true;
	return false;
}

bool alerts_is_new(const struct alerts *a, const struct cw_snapshot *snap,
		   const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (a->v[i].is_open && (cw_verdict_key_is_same(&a->v[i].key, &d->key) ||
					is_consequence(&a->v[i], snap, v)))
			return false;
	return a->n < CW_VERDICT_LIST_MAX;
}

static void note(struct alert *a, const struct cw_snapshot *snap, uint32_t rank)
{
	int32_t label = snap->ranks[rank].rank;

	if (label >= 0 && (uint32_t)label < a->n_labels)
		a->concerns[label] = true;
}

int alerts_add(struct alerts *a, const struct suite_scenario *s, const struct cw_snapshot *snap,
	       const struct cw_verdict *v, const struct cw_stall_decision *d)
{
	/* A mismatch that holds nobody up concerns nobody: its ranks may hang for another reason.
	 */
	bool is_silent = v->klass == CW_CLASS_MISMATCH && !v->waiting_since_ns;
	struct alert new = { .key = d->key, .is_open = true, .n_labels = s->n_ranks + COMPANY };

	new.concerns = calloc(new.n_labels, sizeof(*new.concerns));
	if (!new.concerns)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->n_culprits && !is_silent; i++)
		note(&new, snap, v->culprits[i].rank);
	for (uint32_t i = 0; i < v->n_victims && !is_silent; i++)
		note(&new, snap, v->victims[i]);
	a->v[a->n++] = new;
	return 0;
}

void alerts_close(struct alerts *a, const struct cw_verdict_key *key)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (cw_verdict_key_is_same(&a->v[i].key, key))
			a->v[i].is_open = false;
}

void alerts_fini(struct alerts *a)
{
	for (uint32_t i = 0; i < a->n; i++)
		free(a->v[i].concerns);
	a->n = 0;
}
