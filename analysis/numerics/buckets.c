/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/numerics/buckets.h"

#include <errno.h>
#include <stdlib.h>

#include "model/op.h"

/* A step of the rank, as far as its looks have been gone through. */
struct step {
	int64_t number;
	uint64_t n_calls;    /* of a bucket's size */
	bool is_as_expected; /* … all of them in the buckets' order, and no call is missing */
};

struct matcher {
	const struct cw_numerics_job *job;
	const struct cw_numerics_buckets *buckets;
	struct cw_numerics_bucket *ret;
	uint64_t *sizes; /* sorted */
	struct step step;
	uint64_t seq; /* the newest call on the communicator that was looked at */
};

static int compare_sizes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t fed_elements(const struct cw_numerics_job *job, const struct cw_numerics_look *l)
{
	uint64_t nranks = job->comms[l->comm].nranks;

	if (!l->is_output || !nranks)
		return l->offered;
	if (l->kind == CW_OP_REDUCE_SCATTER)
		return l->offered > UINT64_MAX / nranks ? 0 : l->offered * nranks;
	return l->kind == CW_OP_ALL_GATHER ? l->offered / nranks : l->offered;
}

static uint32_t only_one_of(const struct matcher *m, uint64_t elements)
{
	uint32_t found = CW_NUMERICS_NONE;

	for (uint32_t i = 0; i < m->buckets->n; i++) {
		if (m->buckets->elements[i] != elements)
			continue;
		if (found != CW_NUMERICS_NONE)
			return CW_NUMERICS_NONE;
		found = i;
	}
	return found;
}

static bool is_of_a_bucket(const struct matcher *m, uint64_t elements)
{
	return bsearch(&elements, m->sizes, m->buckets->n, sizeof(elements), compare_sizes);
}

static struct cw_numerics_bucket next_call(struct matcher *m, uint64_t elements)
{
	uint32_t expected = (uint32_t)(m->step.n_calls++ % m->buckets->n);

	if (m->step.is_as_expected && m->buckets->elements[expected] == elements)
		return (struct cw_numerics_bucket){ expected, true };
	m->step.is_as_expected = false;
	return (struct cw_numerics_bucket){ only_one_of(m, elements), false };
}

/* What came out of a call is of the bucket that went in. */
static struct cw_numerics_bucket bucket_of_input(const struct matcher *m, uint32_t output)
{
	const struct cw_numerics_look *out = &m->job->looks[output];

	for (uint32_t i = output; i > m->buckets->first; i--) {
		const struct cw_numerics_look *in = &m->job->looks[i - 1];

		if (in->comm == out->comm && in->kind == out->kind && in->seq == out->seq &&
		    !in->is_output)
			return m->ret[i - 1 - m->buckets->first];
	}
	return (struct cw_numerics_bucket){ only_one_of(m, fed_elements(m->job, out)), false };
}

/* A call that is missing before this one may have been a bucket's. */
static void follow(struct matcher *m, const struct cw_numerics_look *l)
{
	if (l->step != m->step.number)
		m->step = (struct step){ .number = l->step, .is_as_expected = l->step >= 0 };
	if (l->seq > m->seq + 1 || !l->seq)
		m->step.is_as_expected = false;
	if (l->seq > m->seq)
		m->seq = l->seq;
}

static struct cw_numerics_bucket match(struct matcher *m, uint32_t look)
{
	const struct cw_numerics_look *l = &m->job->looks[look];

	if (l->comm == m->buckets->comm && !cw_op_is_p2p(l->kind)) {
		follow(m, l);
		if (l->kind == m->buckets->kind && l->is_output)
			return bucket_of_input(m, look);
		if (l->kind == m->buckets->kind && is_of_a_bucket(m, l->offered))
			return next_call(m, l->offered);
	}
	return (struct cw_numerics_bucket){ CW_NUMERICS_NONE, false };
}

int cw_numerics_buckets_match(const struct cw_numerics_job *job,
			      const struct cw_numerics_buckets *buckets,
			      struct cw_numerics_bucket *ret)
{
	struct matcher m = { .job = job, .buckets = buckets, .ret = ret, .step.number = -1 };

	m.sizes = malloc(((size_t)buckets->n + 1) * sizeof(*m.sizes));
	if (!m.sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < buckets->n; i++)
		m.sizes[i] = buckets->elements[i];
	qsort(m.sizes, buckets->n, sizeof(*m.sizes), compare_sizes);
	for (uint32_t i = buckets->first; i < buckets->last; i++)
		ret[i - buckets->first] = match(&m, i);
	free(m.sizes);
	return 0;
}
