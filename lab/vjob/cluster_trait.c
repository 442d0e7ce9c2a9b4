/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The properties that ranks start with: NCCL's version, its variables, and the size that they pass
 * for a comm.
 */
#include "lab/vjob/cluster_state.h"

#define USUAL_VERSION 22809u
#define USUAL_ENVIRONMENT 42u

/* Returns the property that the last matching line gives the rank; NULL = none. */
static const struct suite_trait *find(const struct suite_scenario *s, uint32_t kind,
				      uint32_t family, uint32_t rank)
{
	for (uint32_t i = s->n_traits; i-- > 0;) {
		const struct suite_trait *t = &s->traits[i];

		if (t->kind == kind && (kind != SUITE_SIZE || t->family == family) &&
		    cw_suite_set_has(&t->set, rank))
			return t;
	}
	return NULL;
}

uint32_t trait_version(const struct suite_scenario *s, uint32_t rank)
{
	const struct suite_trait *t = find(s, SUITE_VERSION, 0, rank);

	return t ? (uint32_t)t->value : USUAL_VERSION;
}

uint64_t trait_environment(const struct suite_scenario *s, uint32_t rank)
{
	const struct suite_trait *t = find(s, SUITE_ENVIRONMENT, 0, rank);

	if (!t)
		return USUAL_ENVIRONMENT;
	return t->value == SUITE_OWN ? UINT64_MAX - rank : t->value;
}

uint32_t trait_size(const struct member *m)
{
	const struct suite_trait *t =
		find(m->rank->c->s, SUITE_SIZE, m->comm->family, m->rank->index);

	return t ? (uint32_t)t->value : m->comm->nranks;
}

int64_t trait_start_ns(struct cluster *c, uint32_t rank)
{
	const struct suite_scenario *s = c->s;

	for (uint32_t i = s->n_traits; i-- > 0;) {
		const struct suite_trait *t = &s->traits[i];

		if ((t->kind != SUITE_STARTS && t->kind != SUITE_STARTS_AT) ||
		    !cw_suite_set_has(&t->set, rank))
			continue;
		return t->kind == SUITE_STARTS ? (int64_t)cluster_random(c, t->value)
					       : (int64_t)t->value;
	}
	return 0;
}

bool trait_sizes_differ(const struct comm *comm)
{
	for (uint32_t i = 0; i < comm->nranks; i++)
		if (trait_size(&comm->members[i]) != comm->nranks)
			return true;
	return false;
}
